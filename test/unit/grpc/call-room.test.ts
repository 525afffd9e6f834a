import { CallRoom } from '../../../src/grpc/call-room.js';

const KIB = 1024;
const NO_ROOM = expect.objectContaining({ code: 'NO_ROOM_FOR_BODY' }) as unknown;

let room: CallRoom;
let ends: (() => void)[];
beforeEach(() => {
  room = new CallRoom();
  ends = [];
});

/** Holds a call until the test ends it. */
function hold(caller: string, messageBytes: number): Promise<void> {
  return room.hold(caller, messageBytes, () => new Promise((resolve) => ends.push(resolve)));
}

function holdMany(caller: string, count: number, messageBytes: number): Promise<void>[] {
  return Array.from({ length: count }, () => hold(caller, messageBytes));
}

test('a caller has 16 MiB, with 16 KiB for each call besides its message', async () => {
  const held = holdMany('one', 1024, 0);
  await expect(hold('one', 0)).rejects.toEqual(NO_ROOM);
  ends.shift()!();
  await held[0];
  const next = hold('one', 0);
  for (const end of ends) end();

  await Promise.all([...held, next]);
});

test('all callers have 64 MiB together', async () => {
  const held = ['a', 'b', 'c', 'd'].flatMap((caller) => holdMany(caller, 64, 240 * KIB));
  await expect(hold('e', 0)).rejects.toEqual(NO_ROOM);
  for (const end of ends.splice(0)) end();
  await Promise.all(held);
  const next = hold('e', 0);
  for (const end of ends) end();

  await next;
});
