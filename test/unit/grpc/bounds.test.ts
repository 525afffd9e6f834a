import type { ServerHttp2Stream } from 'node:http2';

import { Awaited, type AwaitedItem, type EndReason } from '../../../src/grpc/awaited.js';
import type { OpenConnection } from '../../../src/grpc/stream-bounds.js';
import { ManualClock } from '../../support/manual-clock.js';
import { ResetBounds } from '../../../src/grpc/session-bounds.js';
import type { CallMessage } from '../../../src/grpc/message-codec.js';
import { GatewayCall } from '../../../src/grpc/gateway-call.js';
import { shouldRateLimit } from '../../../src/grpc/should-rate-limit.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import type { Caller } from '../../../src/service/request-context.js';

type Item = AwaitedItem & { readonly name: string };

describe('awaited items', () => {
  let clock: ManualClock;
  let ended: [what: string, reason: EndReason][];
  const items = 'first second third fourth gone later'
    .split(' ')
    .map((name) => ({ name, since: 0, bytes: 0 }));
  const [first, second, third, fourth, gone, later] = items as [Item, Item, Item, Item, Item, Item];
  let awaited: Awaited<Item>;
  beforeEach(() => {
    clock = new ManualClock(0);
    ended = [];
    awaited = new Awaited<Item>({
      max: 3,
      maxBytes: 100,
      millis: 1000,
      clock,
      end: ({ name }, reason) => ended.push([name, reason]),
    });
  });

  test('an item ends when its time is over, unless it was deleted', async () => {
    awaited.add(first);
    await clock.advance(400);
    awaited.add(second);
    awaited.add(gone);
    awaited.delete(gone);
    await clock.advance(600);
    expect(ended).toEqual([['first', 'too_late']]);
    await clock.advance(399);
    expect(ended).toHaveLength(1);
    await clock.advance(1);

    expect(ended[1]).toEqual(['second', 'too_late']);
    awaited.add(later);
    await clock.advance(1000);
    expect(ended[2]).toEqual(['later', 'too_late']);
  });

  test('an item beyond the maximum ends the first', () => {
    for (const what of [first, second, third, fourth]) awaited.add(what);

    expect(ended).toEqual([['first', 'too_many']]);
  });

  test('bytes beyond the maximum end as many of the first items as necessary', () => {
    for (const what of [first, second, third]) awaited.add(what);
    awaited.grow(first, 40);
    awaited.grow(second, 40);
    awaited.grow(third, 20);
    expect(ended).toEqual([]);
    awaited.grow(third, 50);
    expect(ended.map(([what]) => what)).toEqual(['first', 'second']);
    awaited.delete(third);
    awaited.add(fourth);
    awaited.grow(fourth, 100);

    expect(ended).toHaveLength(2);
  });

  test('no item ends after close', async () => {
    awaited.add(first);
    awaited.close();
    await clock.advance(2000);

    expect(ended).toEqual([]);
  });
});

describe('resets of streams', () => {
  const OF_ADDRESS = 5000;
  const OF_CONNECTION = 1000;

  let clock: ManualClock;
  let bounds: ResetBounds;
  beforeEach(() => {
    clock = new ManualClock(0);
    bounds = new ResetBounds(clock);
  });

  /** How many resets of an address a new connection may have before it has to end. */
  function resetsOfConnection(address: string): number {
    const connection = bounds.connection(address);
    let resets = 0;
    while (bounds.allows(connection)) resets += 1;
    return resets;
  }

  /** Resets streams of an address on new connections until its bound is reached. */
  function exhaust(address: string): void {
    for (let resets = 0; resets < OF_ADDRESS;) resets += resetsOfConnection(address) + 1;
  }

  test('a connection may reset as many streams as HTTP/2 lets it', () => {
    expect(resetsOfConnection('a')).toBe(OF_CONNECTION);
  });

  test('connections of an address that is beyond its bound end soon, and those of others do not', () => {
    exhaust('a');

    expect(resetsOfConnection('a')).toBe(10);
    expect(resetsOfConnection('b')).toBe(OF_CONNECTION);
  });

  test('an address that is beyond its bound gets four connections a second, until 10 s after', async () => {
    expect(bounds.admits('a')).toBe(true);
    exhaust('a');
    resetsOfConnection('a');
    const admitted: number[] = [];
    for (let second = 0; second < 2; second += 1) {
      let count = 0;
      for (let millis = 0; millis < 1000; millis += 10) {
        if (bounds.admits('a')) count += 1;
        await clock.advance(10);
      }
      admitted.push(count);
    }

    expect(admitted).toEqual([4, 4]);
    expect(bounds.admits('b')).toBe(true);
    await clock.advance(8000);
    expect([bounds.admits('a'), bounds.admits('a')]).toEqual([true, true]);
  });

  test('a second without resets makes room for 500 more', async () => {
    exhaust('a');
    await clock.advance(1000);

    expect(resetsOfConnection('a')).toBe(500);
  });
});

const KIB = 1024;

test('a call takes 16 KiB besides its message of what its caller has, until its checks are made', async () => {
  let unblock!: () => void;
  const blocked = new Promise<never>((_resolve, reject) => {
    unblock = () => {
      reject(new Error('the slice failed'));
    };
  });
  const failed = ({ code, message }: Error & { code?: unknown }) => ({ code, details: message });
  const answer = shouldRateLimit(
    ...([
      { slices: { next: () => blocked } },
      { GRPC_KEY_TEMPLATE: '{entries}' },
      { failed },
    ] as unknown as Parameters<typeof shouldRateLimit>),
  );
  const ignore = (): void => undefined;
  const connection = { bounds: { coming: { add: ignore } }, onOver: ignore, onRejected: ignore };
  const call = (bytes: number): Promise<unknown> =>
    new Promise((resolve) => {
      const stream = {
        on: () => stream,
        respond: resolve,
        close: ignore,
      } as unknown as ServerHttp2Stream;
      const gateway = new GatewayCall(stream, {}, connection as unknown as OpenConnection);
      gateway.caller = { name: 'one' } as Caller;
      answer(gateway, { length: bytes } as unknown as CallMessage);
    });
  const most = BODY_BYTES.caller / (256 * KIB);
  const begun = Array.from({ length: most }, () => call(240 * KIB));
  expect(await call(4 * KIB)).toMatchObject({ 'grpc-status': 'NO_ROOM_FOR_BODY' });
  unblock();
  await Promise.all(begun);

  expect(await call(240 * KIB)).toMatchObject({ 'grpc-message': 'the%20slice%20failed' });
});
