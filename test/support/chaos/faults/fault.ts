import type { Random } from '../random.js';

/** What is to be expected while a fault lasts, and until its damage is mended. */
export interface Effect {
  /** The indexes of the replicas that stand still. */
  readonly stops?: readonly number[];
  /** The indexes of the replicas that may be longer without Redis than others. */
  readonly isolates?: readonly number[];
  /** A server of Redis answers nobody. A reply or a wake may have been waiting to be sent. */
  readonly silencesRedis?: true;
  /** What Redis may forget: what it had not sent to its replicas yet, or all. */
  readonly loses?: 'unreplicated' | 'memory';
  /** The key whose slot moves. No replica can renew its lease of it meanwhile. */
  readonly moves?: string;
}

/** Something that goes wrong for a while. */
export interface Fault extends Effect {
  /** What it is done to, for reports. */
  readonly target: string;
  /** Faults with the same scope happen one at a time. */
  readonly scope: string;
  /** How long it lasts, from the end of `begin` to the start of `end`. */
  readonly millis: number;
  /** Awaited. */
  begin(): unknown;
  /** Awaited; done when all that can be mended is. */
  end(): unknown;
}

export interface FaultKind {
  readonly name: string;
  draw(random: Random): Fault;
}

/** A fault that has happened. Times are milliseconds since 1970. */
export interface FaultRecord extends Effect {
  readonly name: string;
  readonly target: string;
  readonly beganAt: number;
  /** When it was mended; infinite while it is not. */
  readonly endedAt: number;
}

/** For those that are over as soon as they have begun. */
export const nothingToMend = (): void => undefined;

/** The overlap of a fault with a span of time, in milliseconds. */
export function overlapMillis(fault: FaultRecord, from: number, to: number): number {
  return Math.max(0, Math.min(to, fault.endedAt) - Math.max(from, fault.beganAt));
}

/** The faults in a span of time by which Redis may have forgotten something. */
export function lossesIn(
  faults: readonly FaultRecord[],
  from: number,
  to: number,
): readonly FaultRecord[] {
  return faults.filter((fault) => fault.loses !== undefined && overlaps(fault, from, to));
}

export function overlaps(fault: FaultRecord, from: number, to: number): boolean {
  return fault.beganAt <= to && fault.endedAt >= from;
}
