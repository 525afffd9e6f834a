import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../../../config/settings.js';
import type { BodyRoom } from '../../intake/body-room.js';
import { withJsonArray } from '../../intake/json-array.js';
import { refuseParameters } from '../../intake/parameters.js';
import { errorAnswer, type ErrorCode } from '../../replies/errors.js';
import type { Headers } from '../../replies/headers.js';
import { httpErrorFor } from '../../replies/http-error-for.js';
import { logSubject } from '../../replies/log-subject.js';
import { JSON_TYPE, send } from '../../replies/reply.js';
import type { Turns } from './turns.js';

export interface BulkParts {
  readonly turns: Turns;
  readonly room: BodyRoom;
  readonly settings: Pick<Settings, 'LOG_4XX' | 'LOG_5XX'>;
  readonly logger: Logger;
}

/** @returns what answers calls for many, each with what `callOf` makes of it */
export function answerMany(
  { room }: BulkParts,
  callOf: (elements: readonly unknown[], request: Request, response: Response) => BulkCall,
): RequestHandler {
  return (request, response) => {
    refuseParameters(request.query);
    return withJsonArray(request, response, room, (elements) =>
      callOf(elements, request, response).run(),
    );
  };
}

/**
 * A call for many on its way to its answer, which has one result for each element, in their order. Whatever becomes of
 * one element harms no other.
 */
export abstract class BulkCall {
  /** Of the answer. */
  protected readonly headers: Headers = [];
  /** As JSON, by the place of the element. */
  protected readonly results: string[] = [];
  /** How many elements were refused, by why. */
  readonly #refused: Partial<Record<ErrorCode, number>> = {};
  /** The elements that are begun and not dealt with, and one more until all are begun. */
  #undealt = 1;
  /** A promise of all their promises would cost a call of 50 a third of its time. */
  #onAllDealt!: () => void;

  constructor(
    private readonly parts: BulkParts,
    protected readonly elements: readonly unknown[],
    protected readonly request: Request,
    protected readonly response: Response,
  ) {}

  /** Sets the result of an element, or throws where it has none. */
  protected abstract deal(element: unknown, place: number): Promise<void>;

  /** Whether elements are begun with for a client that has disconnected. */
  protected abstract readonly goesOnAlone: boolean;

  /** In the place of an answer to a client that has disconnected. */
  protected abstract giveBack(): void;

  /** Deals with all elements, and answers. */
  async run(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onAllDealt = resolve;
      void this.#begin();
    });
    this.#logRefused();
    if (this.isDisconnected) this.giveBack();
    else send(this.response, 200, JSON_TYPE, `[${this.results.join()}]`, this.headers);
  }

  /** Begins with all elements, as fast as the turns let it. */
  async #begin(): Promise<void> {
    const { elements, parts } = this;
    const { length } = elements;
    let begun = 0;
    while (begun < length && (this.goesOnAlone || !this.isDisconnected)) {
      const end = begun + (await parts.turns.next(length - begun));
      this.#undealt += end - begun;
      for (; begun < end; begun += 1) void this.#dealOrFail(elements[begun], begun);
    }
    this.#wasDealt();
  }

  protected get isDisconnected(): boolean {
    return this.request.socket.destroyed;
  }

  protected get log(): Logger {
    return this.parts.logger.child(logSubject(this.response));
  }

  /** Has the log count the refusal. */
  protected noteRefusal(code: ErrorCode): void {
    this.#refused[code] = (this.#refused[code] ?? 0) + 1;
  }

  async #dealOrFail(element: unknown, place: number): Promise<void> {
    try {
      await this.deal(element, place);
    } catch (error) {
      this.#fail(place, error);
    }
    this.#wasDealt();
  }

  #wasDealt(): void {
    this.#undealt -= 1;
    if (this.#undealt === 0) this.#onAllDealt();
  }

  /** The element has the status and the message that its request would have, if it came alone. */
  #fail(place: number, error: unknown): void {
    const { code, message } = httpErrorFor(error);
    const { status, retryAfter } = errorAnswer(code);
    this.noteRefusal(code);
    if (code === 'INTERNAL_ERROR' && this.parts.settings.LOG_5XX) {
      this.log.error({ err: error, errorCode: code, place }, 'element of a call failed');
    }
    this.results[place] = JSON.stringify({ status, error: message, retryAfter });
  }

  #logRefused(): void {
    const refused = this.#refused;
    if (!this.parts.settings.LOG_4XX || Object.keys(refused).length === 0) return;
    this.log.info({ refused }, 'elements of a call refused');
  }
}
