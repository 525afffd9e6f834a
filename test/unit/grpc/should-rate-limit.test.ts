import type { ServerUnaryCall } from '@grpc/grpc-js';

import type { CallMessage } from '../../../src/grpc/call-message.js';
import type { RateLimitResponse } from '../../../src/grpc/messages.js';
import { shouldRateLimit, type ShouldRateLimitParts } from '../../../src/grpc/should-rate-limit.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';

const KIB = 1024;

test('a call takes 16 KiB besides its message of what its caller has, until its checks are made', async () => {
  let unblock!: () => void;
  const blocked = new Promise<never>((_resolve, reject) => {
    unblock = () => {
      reject(new Error('the slice failed'));
    };
  });
  const answer = shouldRateLimit({
    service: { slices: { next: () => blocked } },
    heads: { of: () => ({ caller: { name: 'one' } }) },
    settings: { GRPC_KEY_TEMPLATE: '{entries}' },
    log: { failed: (error: unknown) => error },
  } as unknown as ShouldRateLimitParts);
  const call = (bytes: number): Promise<unknown> => {
    const unary = { request: { length: bytes }, on: () => undefined, cancelled: false };
    return new Promise((resolve) => {
      answer(unary as unknown as ServerUnaryCall<CallMessage, RateLimitResponse>, resolve);
    });
  };
  const most = BODY_BYTES.caller / (256 * KIB);
  const begun = Array.from({ length: most }, () => call(240 * KIB));
  expect(await call(0)).toMatchObject({ code: 'NO_ROOM_FOR_BODY' });
  unblock();
  await Promise.all(begun);

  expect(await call(240 * KIB)).toMatchObject({ message: 'the slice failed' });
});
