import type { ElectionMutex } from '../../../src/redis/waiting/window-leader.js';

/** A mutex that is acquired where the test has it free. */
export class ScriptedMutex implements ElectionMutex {
  isAcquired = false;
  /** Whether another holds it. */
  isTaken = false;
  attempts = 0;
  releases = 0;
  /** Awaited by each attempt and each release; rejects where they are to fail. */
  answer: () => Promise<void> = () => Promise.resolve();

  async tryAcquire(): Promise<boolean> {
    this.attempts += 1;
    await this.answer();
    this.isAcquired = !this.isTaken;
    return this.isAcquired;
  }

  async release(): Promise<void> {
    this.releases += 1;
    await this.answer();
    this.isAcquired = false;
  }
}
