import { serviceError } from '../../service/service-error.js';

const MIB = 1024 * 1024;

/** The most bytes that are held at a time for the bodies of a port: in all, for one caller, and for one connection. */
export const BODY_BYTES = { all: 64 * MIB, caller: 16 * MIB, connection: 4 * MIB } as const;

/** The caller or the client that sends the body. */
export interface BodyOwner {
  /** The caller's name, or the client's address if there are no tokens. */
  readonly caller: string;
  readonly connection: object;
}

/**
 * Bounds the bytes that are held for bodies. Only received bytes count, since an announced length costs its sender
 * nothing. A caller and a connection have at most a share, so that others have room.
 */
export class BodyRoom {
  #taken = 0;
  readonly #takenBy = new Map<string | object, number>();

  /** @returns a place for one body, which has no bytes yet */
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

/** The part of the room that one body takes. */
export interface BodyPlace {
  /** @throws ServiceError NO_ROOM_FOR_BODY */
  take(bytes: number): void;
  /** Gives back all bytes that were taken. */
  leave(): void;
}
