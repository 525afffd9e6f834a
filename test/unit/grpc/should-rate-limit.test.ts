import type { CallMessage } from '../../../src/grpc/call-message.js';
import { shouldRateLimit, type ShouldRateLimitParts } from '../../../src/grpc/should-rate-limit.js';
import type { UnaryCall } from '../../../src/grpc/unary-call.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import type { RequestContext } from '../../../src/service/request-context.js';

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
    settings: { GRPC_KEY_TEMPLATE: '{entries}' },
    log: { failed: (error: unknown) => error },
  } as unknown as ShouldRateLimitParts);
  const head = { caller: { name: 'one' } } as RequestContext;
  const call = (bytes: number): Promise<unknown> =>
    new Promise((resolve) => {
      const unary = { isOver: false, fail: resolve } as unknown as UnaryCall;
      answer(unary, head, { length: bytes } as unknown as CallMessage);
    });
  const most = BODY_BYTES.caller / (256 * KIB);
  const begun = Array.from({ length: most }, () => call(240 * KIB));
  expect(await call(4 * KIB)).toMatchObject({ code: 'NO_ROOM_FOR_BODY' });
  unblock();
  await Promise.all(begun);

  expect(await call(240 * KIB)).toMatchObject({ message: 'the slice failed' });
});
