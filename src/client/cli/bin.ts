#!/usr/bin/env node
import { main } from './main.js';

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // Nobody reads it any more. What goes on is not ended for that: CMD keeps its approval.
    if (error.code !== 'EPIPE') throw error;
  });
}

// Without process.exit: places and approvals that are being given back are given back.
process.exitCode = await main(process.argv.slice(2));
