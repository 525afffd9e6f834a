import { type CheckRequest, type Decision } from './limiter.js';

type CheckOfPlace = Pick<CheckRequest, 'key' | 'requestId'>;

/**
 * Counts the places in which requests wait. The checks with one request id share a place, so that a check that takes a
 * place over needs no further one.
 */
export class WaitingBudget {
  #taken = 0;
  /** How many checks use the place of a request whose caller has chosen its id. */
  readonly #checks = new Map<string, number>();

  get taken(): number {
    return this.#taken;
  }

  /**
   * @param most how many places there are
   * @returns gives the place back, which the check no longer uses: later calls have no effect. Undefined if none is left
   */
  take(most: number, request: CheckOfPlace): (() => void) | undefined {
    const name = nameOf(request);
    const sharing = name === undefined ? 0 : (this.#checks.get(name) ?? 0);
    if (sharing === 0 && this.#taken >= most) return undefined;
    if (sharing === 0) this.#taken += 1;
    if (name !== undefined) this.#checks.set(name, sharing + 1);
    let isUsed = true;
    return () => {
      if (isUsed) this.#giveBack(name);
      isUsed = false;
    };
  }

  #giveBack(name: string | undefined): void {
    const sharing = name === undefined ? 0 : (this.#checks.get(name) ?? 0) - 1;
    if (sharing === 0) this.#taken -= 1;
    if (name === undefined) return;
    if (sharing === 0) this.#checks.delete(name);
    else this.#checks.set(name, sharing);
  }
}

/** Runs a check in a place, which it gives back at its end, or with `keepMillis` when its request no longer waits. */
export async function withinBudget(
  giveBack: () => void,
  request: CheckRequest,
  check: (request: CheckRequest) => Promise<Decision>,
): Promise<Decision> {
  let goesOn = false;
  try {
    const onPlaceEnded = (): void => {
      giveBack();
      request.onPlaceEnded?.();
    };
    const decision = await check(
      request.keepMillis === undefined ? request : { ...request, onPlaceEnded },
    );
    goesOn = decision.outcome === 'waiting';
    return decision;
  } finally {
    if (!goesOn) giveBack();
  }
}

function nameOf({ key, requestId }: CheckOfPlace): string | undefined {
  return requestId === undefined ? undefined : `${requestId} ${key}`;
}
