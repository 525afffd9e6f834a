import type { TopologyName } from '../topologies/topology.js';

export const LOAD_NAMES = [
  'plain',
  'bulk',
  'waiting',
  'grpc',
  'releases',
  'leaving',
  'turning',
] as const;
export type LoadName = (typeof LOAD_NAMES)[number];

export const FAULT_NAMES = [
  'stall-300',
  'stall-800',
  'stall-1500',
  'stall-5000',
  'restart',
  'restart-empty',
  'failover',
  'cut',
  'late',
  'flush',
  'flush-stalled',
] as const;
export type FaultName = (typeof FAULT_NAMES)[number];

/** A load that meets a fault. */
export interface Cell {
  readonly load: LoadName;
  readonly fault: FaultName;
  /** Drawn where it is not given. */
  readonly keys?: number;
}

/** What there is no cell for: one server has no other, and servers that copy from others never all lose their data. */
const MISSING: Readonly<Record<TopologyName, readonly FaultName[]>> = {
  standalone: ['failover'],
  sentinel: ['restart-empty'],
  cluster: ['restart-empty'],
};

/** The faults that meet the end of a window: those after which Redis still has the key, and the length of its windows. */
const AT_A_TURN: readonly FaultName[] = [
  'stall-300',
  'stall-800',
  'stall-1500',
  'late',
  'flush-stalled',
];
/** In mid-window it differs from the other stalls by nothing that matters. */
const ONLY_AT_A_TURN: readonly FaultName[] = ['stall-800'];

export function cellsOf(topology: TopologyName): Cell[] {
  return LOAD_NAMES.flatMap((load) =>
    FAULT_NAMES.filter((fault) => !MISSING[topology].includes(fault))
      .filter((fault) =>
        load === 'turning' ? AT_A_TURN.includes(fault) : !ONLY_AT_A_TURN.includes(fault),
      )
      .map((fault) => ({ load, fault })),
  );
}

export function nameOf({ load, fault }: Cell): string {
  return `${load}/${fault}`;
}
