import { homeOf, servingNow } from '../control/reach.ts'
import { define, json } from '../define.ts'
import { plain } from '../format.ts'
import { version } from '../version.ts'

export const command = define<{ readonly json?: boolean }>({
  brief: 'Print the versions',
  about: 'Prints the version of Portal, of the Node that it runs on, and of the control plane, where one runs.',
  examples: [
    ['portal version', 'the versions'],
    ['portal --version', 'the same'],
  ],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const serving = servingNow(homeOf(cli))
    if (flags.json) cli.json({ portal: version, node: process.versions.node, controlPlane: serving?.version ?? null })
    else
      cli.print(
        `portal ${version} (Node ${process.versions.node}${serving && serving.version !== version ? `; control plane ${plain(serving.version)}` : ''})`,
      )
  },
})
