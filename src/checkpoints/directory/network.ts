/** Numbers of Linux file systems (`statfs`) that lie on another machine, where a lost answer is an everyday thing. */
const networks: Readonly<Record<number, string>> = {
  0x6969: 'nfs',
  0xff534d42: 'cifs',
  0xfe534d42: 'smb',
  0x517b: 'smb',
  0x01021997: '9p',
  0x00c36400: 'ceph',
  0x0bd00bd0: 'lustre',
  0x5346414f: 'afs',
  0x47504653: 'gpfs',
  0x65735546: 'fuse',
}

/** The name of a network file system; null: a local one, or one that is not known. */
export const networkName = (type: number): string | null => networks[type >>> 0] ?? null
