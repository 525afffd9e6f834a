import type { ElectionMutex } from '../../../src/redis/waiting/window-leader.js';

/** A mutex that is acquired where the test has it free. */
export class ScriptedMutex implements ElectionMutex {
  isAcquired = false;
  /** Whether another holds it. */
  isTaken = false;
  attempts = 0;
  releases = 0;
  /** For how long it was to be held, each time. */
  readonly terms: number[] = [];
  /** How often it was prolonged, or was to be. */
  prolonged = 0;
  /** Awaited by each attempt, each prolongation and each release; rejects where they are to fail. */
  answer: () => Promise<void> = () => Promise.resolve();

  async tryAcquire(millis: number): Promise<boolean> {
    this.attempts += 1;
    this.terms.push(millis);
    await this.answer();
    this.isAcquired = !this.isTaken;
    return this.isAcquired;
  }

  async prolong(millis: number): Promise<boolean> {
    this.prolonged += 1;
    this.terms.push(millis);
    await this.answer();
    return this.isAcquired;
  }

  async release(): Promise<void> {
    this.releases += 1;
    await this.answer();
    this.isAcquired = false;
  }
}
