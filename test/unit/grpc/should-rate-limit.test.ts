import type { CallMessage } from '../../../src/grpc/call-message.js';
import { GatewayCall } from '../../../src/grpc/gateway-call.js';
import { shouldRateLimit, type ShouldRateLimitParts } from '../../../src/grpc/should-rate-limit.js';
import type { UnaryCall } from '../../../src/grpc/unary-call.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import type { Caller } from '../../../src/service/callers/caller.js';

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
  const call = (bytes: number): Promise<unknown> =>
    new Promise((resolve) => {
      const unary = { isOver: false, headers: {}, fail: resolve } as unknown as UnaryCall;
      const gateway = Object.assign(new GatewayCall(unary), { caller: { name: 'one' } as Caller });
      answer(gateway, { length: bytes } as unknown as CallMessage);
    });
  const most = BODY_BYTES.caller / (256 * KIB);
  const begun = Array.from({ length: most }, () => call(240 * KIB));
  expect(await call(4 * KIB)).toMatchObject({ code: 'NO_ROOM_FOR_BODY' });
  unblock();
  await Promise.all(begun);

  expect(await call(240 * KIB)).toMatchObject({ message: 'the slice failed' });
});
