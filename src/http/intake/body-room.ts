import { serviceError } from '../../service/service-error.js';

const MIB = 1024 * 1024;

/** How many bytes may be held at a time for the bodies of a port: by all, for one caller, and for one connection. */
export const BODY_BYTES = { all: 64 * MIB, caller: 16 * MIB, connection: 4 * MIB } as const;

/** The caller or the client that sends the body. */
export interface BodyOwner {
  /** The caller's name, or the client's address if callers have no names. */
  readonly caller: string;
  readonly connection: object;
}

/**
 * Bounds the bytes that are held for bodies: what has come, not what is announced, since an announcement costs its
 * sender nothing. One caller or connection takes a share at most, so that others have room.
 */
export class BodyRoom {
  #taken = 0;
  readonly #takenBy = new Map<string | object, number>();

  /** The place of one body, which has no bytes yet. */
  enter(owner: BodyOwner): BodyPlace {
    let held = 0;
    return {
      take: (bytes) => {
        this.#demand(owner, bytes);
        held += bytes;
        this.#add(owner, bytes);
      },
      leave: () => {
        this.#add(owner, -held);
        held = 0;
      },
    };
  }

  #demand({ caller, connection }: BodyOwner, bytes: number): void {
    if (
      this.#taken + bytes > BODY_BYTES.all ||
      this.#of(caller) + bytes > BODY_BYTES.caller ||
      this.#of(connection) + bytes > BODY_BYTES.connection
    ) {
      throw serviceError('NO_ROOM_FOR_BODY', {});
    }
  }

  #of(owner: string | object): number {
    return this.#takenBy.get(owner) ?? 0;
  }

  #add({ caller, connection }: BodyOwner, bytes: number): void {
    this.#taken += bytes;
    for (const owner of [caller, connection]) {
      const taken = this.#of(owner) + bytes;
      if (taken === 0) this.#takenBy.delete(owner);
      else this.#takenBy.set(owner, taken);
    }
  }
}

/** What one body takes of the room. */
export interface BodyPlace {
  /** @throws ServiceError NO_ROOM_FOR_BODY */
  take(bytes: number): void;
  /** Gives back all that was taken. */
  leave(): void;
}
