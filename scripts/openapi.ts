/** Writes docs/openapi.json from the route table. */
import { writeFileSync } from 'node:fs'
import { openapiDocument } from '../src/contract/openapi.ts'
import manifest from '../package.json' with { type: 'json' }

writeFileSync('docs/openapi.json', `${JSON.stringify(openapiDocument(manifest.version), null, 2)}\n`)
