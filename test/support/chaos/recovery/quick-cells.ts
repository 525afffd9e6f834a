import type { Cell } from './cells.js';

/** A short stall, which had wedged a replica for good when it came upon more keys. */
export const QUICK_CELL: Cell = { load: 'bulk', fault: 'stall-1500', keys: 2000 };

/** Each load and each fault of one Redis, and the most keys where a short stall had wedged a replica for good. */
export const FULL_CELLS: readonly Cell[] = [
  { load: 'bulk', fault: 'stall-1500', keys: 19_000 },
  { load: 'leaving', fault: 'stall-5000', keys: 1000 },
  { load: 'waiting', fault: 'restart-empty', keys: 500 },
  { load: 'plain', fault: 'late', keys: 1000 },
  { load: 'grpc', fault: 'restart', keys: 5000 },
  { load: 'releases', fault: 'cut', keys: 2000 },
  { load: 'waiting', fault: 'stall-300', keys: 500 },
  { load: 'bulk', fault: 'flush', keys: 5000 },
  { load: 'bulk', fault: 'flush-stalled', keys: 2000 },
  { load: 'turning', fault: 'stall-800', keys: 12 },
];
