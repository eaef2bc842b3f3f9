// @ts-check
'use strict'
throw new Error(
  `Node ${process.versions.node} cannot require('portal/sdk'), which is an ES module: write "const { job } = await import('portal/sdk')", or use Node 20.19, 22.12 or newer`,
)
