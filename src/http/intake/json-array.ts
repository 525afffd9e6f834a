import type { IncomingHttpHeaders } from 'node:http';

import type { Request, Response } from 'express';

import type { BodyBudget, BodyMemory } from '../../service/callers/body-budget.js';
import type { Slices } from '../../service/deciding/slices.js';
import { serviceError } from '../../service/service-error.js';
import { elementsIn } from './array-elements.js';
import { BodyBuffer, MAX_BODY_BYTES, tooLarge } from './body-buffer.js';

const JSON_TYPE = /^application\/json *(?:;|$)/i;

/** The memory that an element takes besides its text, until its bulk request ends. */
export const BYTES_OF_ELEMENT = 128;

/** What bulk requests share. */
export interface ArrayParts {
  readonly budget: BodyBudget;
  readonly slices: Pick<Slices, 'next'>;
}

/**
 * Reads the JSON array in the body of a request that was taken in during the same tick, in slices,
 * and passes it to `work`, unless the client disconnects before the end of the body.
 * @throws ServiceError UNSUPPORTED_BODY, BODY_TOO_LARGE, NO_ROOM_FOR_BODY or INVALID_BODY
 */
export async function withJsonArray(
  request: Request,
  response: Response,
  { budget, slices }: ArrayParts,
  work: (elements: readonly unknown[]) => Promise<void>,
): Promise<void> {
  const { headers } = request;
  rejectOtherTypes(headers);
  // The length of a chunked body is known only at its end.
  const announced = Number(headers['content-length'] ?? MAX_BODY_BYTES);
  if (announced > MAX_BODY_BYTES) throw tooLarge();
  const { context } = response.locals;
  const memory = budget.memoryFor(context.owner);
  try {
    const body = await readBody(request, announced, memory);
    if (!body) return;
    const reading = elementsIn(body);
    let step;
    do {
      await slices.next(context, 1);
      step = reading.next();
    } while (!step.done);
    const elements = step.value;
    memory.take(elements.length * BYTES_OF_ELEMENT);
    // Called at once, so that the slice goes on.
    await work(elements);
  } finally {
    memory.giveBack();
  }
}

function rejectOtherTypes(headers: IncomingHttpHeaders): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (!JSON_TYPE.test(type)) throw unsupported('Content-Type', 'application/json');
  // A small compressed body may expand to a large one.
  if (encoding.toLowerCase() !== 'identity') throw unsupported('Content-Encoding', 'identity');
}

/**
 * Reads a body. A body that is rejected is still read to its end, and discarded: its client may not read an answer
 * before it has sent everything.
 * @returns undefined if the client disconnected before the body's end
 */
async function readBody(
  request: Request,
  announced: number,
  memory: BodyMemory,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    let body: BodyBuffer | undefined = new BodyBuffer(memory, announced);
    let rejection: Error | undefined;
    request.on('data', (chunk: Buffer) => {
      try {
        body?.append(chunk);
      } catch (error) {
        rejection = error as Error;
        body = undefined;
        memory.giveBack();
      }
    });
    request.once('end', () => {
      if (rejection) reject(rejection);
      else resolve(body?.bytes);
    });
    // No effect after the end of the body.
    request.once('close', () => {
      resolve(undefined);
    });
  });
}

function unsupported(header: string, value: string): Error {
  return serviceError('UNSUPPORTED_BODY', { header, value });
}
