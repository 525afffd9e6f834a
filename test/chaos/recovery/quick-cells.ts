import type { Cell } from './cells.js';

/** Each load and each fault of one Redis. */
export const QUICK_CELLS: readonly Cell[] = [
  { load: 'bulk', fault: 'stall-1500' },
  { load: 'leaving', fault: 'stall-5000' },
  { load: 'waiting', fault: 'restart-empty' },
  { load: 'plain', fault: 'late' },
  { load: 'grpc', fault: 'restart' },
  { load: 'releases', fault: 'cut' },
  { load: 'waiting', fault: 'stall-300' },
  { load: 'bulk', fault: 'flush' },
];
