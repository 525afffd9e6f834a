import type { ElectionMutex } from '../../../src/redis/waiting/window-leader.js';

/** A mutex that can be acquired unless the test has it taken. */
export class ScriptedMutex implements ElectionMutex {
  isAcquired = false;
  /** Whether another holds it. */
  isTaken = false;
  attempts = 0;
  releases = 0;
  /** The requested terms. */
  readonly terms: number[] = [];
  /** How often it was asked to be prolonged. */
  prolonged = 0;
  /** Each attempt, prolongation and release awaits this, and fails if it rejects. */
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
