import { hostname } from 'node:os';

import { MOST_BYTES, notShort } from './texts.js';

/** Sluice rejects a part of a character, which a cut might leave. */
const NOT_PRINTED = /[^\x21-\x7e]/g;

interface Held {
  readonly holdMillis?: number | undefined;
  readonly holder?: string | undefined;
}

/** Names the holder of approvals that are held. */
export class Holder {
  readonly #name: string | undefined;

  /**
   * @param name by default host and process; `false` for none
   * @throws RangeError if it is empty or too long
   */
  constructor(name: string | false = hostAndProcess()) {
    const wrong = name === false ? undefined : notShort('holder', name);
    if (wrong) throw wrong;
    this.#name = name === false ? undefined : name;
  }

  /** A check with its holder, if the approval is to be held. */
  named<Element extends Held>(element: Element): Element {
    if (this.#name === undefined || element.holdMillis === undefined) return element;
    return { ...element, holder: this.#name };
  }
}

function hostAndProcess(): string {
  const ofProcess = `:${process.pid}`;
  const host = hostname().replace(NOT_PRINTED, '_');
  return host.slice(0, MOST_BYTES - ofProcess.length) + ofProcess;
}
