// `npm run demo:picture`: draws docs/images/demo.svg from a recorded run. To record another one:
// npm run demo -- --record scripts/demo/recording.jsonl
import { readFileSync, writeFileSync } from 'node:fs';

import { picture } from './picture.mjs';

const recording = readFileSync(new URL('recording.jsonl', import.meta.url), 'utf8');
const lines = recording.trimEnd().split('\n');
const svg = picture(lines.map((line) => JSON.parse(line)));
writeFileSync(new URL('../../docs/images/demo.svg', import.meta.url), svg);
