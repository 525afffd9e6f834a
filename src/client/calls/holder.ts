import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';

import { SluiceError } from '../errors.js';
import { MOST_BYTES, notShort } from './texts.js';

/** Sluice rejects a part of a character, which a cut might leave. */
const NOT_PRINTED = /[^\x21-\x7e]/g;
/** How Sluice of a version without holders rejects one: of a check alone, and of an element of a bulk request. */
const UNKNOWN = /^unknown parameter holder;|^holder must be left out/;
/** After that, a rollout of Sluice may be over. */
const UNNAMED_MILLIS = 60_000;

interface Held {
  readonly holdMillis?: number | undefined;
}

/** Names the holder of approvals that are held, if Sluice knows holders. */
export class Holder {
  readonly #name: string | undefined;
  #unnamedUntil = -Infinity;

  /**
   * @param name by default host and process; `false` for none
   * @throws RangeError if it is empty or too long
   */
  constructor(name: string | false = hostAndProcess()) {
    const wrong = name === false ? undefined : notShort('holder', name);
    if (wrong) throw wrong;
    this.#name = name === false ? undefined : name;
  }

  /**
   * Asks with the holder, if the approval is to be held. If Sluice does not know holders, asks without it, and goes on so
   * for a while.
   */
  ask<Element extends Held, Value>(
    element: Element,
    ask: (element: Element & { readonly holder?: string }) => Promise<Value>,
  ): Promise<Value> {
    const name = this.#name;
    const isNamed = element.holdMillis !== undefined && performance.now() >= this.#unnamedUntil;
    if (name === undefined || !isNamed) return ask(element);
    return ask({ ...element, holder: name }).catch((error: unknown) => {
      if (!isUnknown(error)) throw error;
      this.#unnamedUntil = performance.now() + UNNAMED_MILLIS;
      return ask(element);
    });
  }
}

/** The rejected check has counted nothing. */
function isUnknown(error: unknown): boolean {
  return error instanceof SluiceError && error.status === 400 && UNKNOWN.test(error.message);
}

function hostAndProcess(): string {
  const ofProcess = `:${process.pid}`;
  const host = hostname().replace(NOT_PRINTED, '_');
  return host.slice(0, MOST_BYTES - ofProcess.length) + ofProcess;
}
