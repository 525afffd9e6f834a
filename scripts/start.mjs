// `npm start`: completes the set-up of a fresh clone, then serves in this same process, so that signals
// reach the service itself. package.json has `exec`, so that no shell is between npm and this process.
import { build, installToRun } from './lib/prepare.mjs';

installToRun();
build();
await import('../dist/main.js');
