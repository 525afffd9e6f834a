// `node bench/publish.mjs`: writes the recorded results of bench/results/published.json into BENCHMARKS.md again, and their
// chart, after a change of how they are shown. `npm run format` afterwards.
import { readFileSync } from 'node:fs';

import { publish } from './lib/publish.mjs';

const RECORDED = new URL('results/published.json', import.meta.url);

publish(JSON.parse(readFileSync(RECORDED, 'utf8')));
