#!/usr/bin/env node
import { main } from './main.js';

for (const stream of [process.stdout, process.stderr]) {
  // What writes a result has its error. Else nothing is ended for that: CMD keeps its approval.
  stream.on('error', () => undefined);
}

// Without process.exit: places and approvals that are being given back are given back.
process.exitCode = await main(process.argv.slice(2));
