import { serviceError } from '../errors.js';

const MIB = 1024 * 1024;

/** The most bytes that the bodies or messages of a port take at a time: in all, and for one caller. */
export const BODY_BYTES = { all: 64 * MIB, caller: 16 * MIB } as const;

/**
 * Bounds the bytes that the bodies of a port take. Only received bytes count, since an announced length costs its sender
 * nothing. A caller has at most a share, so that others have the rest.
 */
export class BodyBudget {
  #taken = 0;
  readonly #takenBy = new Map<string, number>();

  /**
   * @param caller its name, or the client's address if there are no tokens
   * @returns the memory of one body, which has no bytes yet
   */
  memoryFor(caller: string) {
    let taken = 0;
    return {
      /** @throws ServiceError NO_ROOM_FOR_BODY */
      take: (bytes: number): void => {
        if (this.#taken + bytes > BODY_BYTES.all || this.#of(caller) + bytes > BODY_BYTES.caller) {
          throw serviceError('NO_ROOM_FOR_BODY', {});
        }
        taken += bytes;
        this.#add(caller, bytes);
      },
      /** Gives back all bytes that were taken. */
      giveBack: (): void => {
        this.#add(caller, -taken);
        taken = 0;
      },
    };
  }

  #of(caller: string): number {
    return this.#takenBy.get(caller) ?? 0;
  }

  #add(caller: string, bytes: number): void {
    this.#taken += bytes;
    const taken = this.#of(caller) + bytes;
    if (taken === 0) this.#takenBy.delete(caller);
    else this.#takenBy.set(caller, taken);
  }
}

/** The part of the budget that one body takes. */
export type BodyMemory = ReturnType<BodyBudget['memoryFor']>;
