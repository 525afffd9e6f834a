import { WindowLeader } from '../../../../src/redis/waiting/window-leader.js';
import { recordLog } from '../../../support/recorded-log.js';
import { ScriptedMutex } from '../../../support/waiting/scripted-mutex.js';
import { quiet } from '../../../support/waiting/scripted-store.js';

const AWAY = new Error('the store is away');

let mutex: ScriptedMutex;
let announced: number;
let leader: WindowLeader;
beforeEach(() => {
  mutex = new ScriptedMutex();
  announced = 0;
  const announce = (): Promise<void> => {
    announced += 1;
    return Promise.resolve();
  };
  leader = new WindowLeader(mutex, announce, recordLog('silent').logger);
});

/** Holds up attempts and releases until the function that it returns is called. */
function holdUp(): () => void {
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  mutex.answer = () => held;
  return letGo;
}

test('leads once it has volunteered, where nobody does', async () => {
  expect(leader.isLeading).toBe(false);
  await leader.volunteer();
  expect(leader.isLeading).toBe(true);
  await leader.volunteer();
  expect(mutex.attempts).toBe(1);
});

test('does not lead where another does, and may volunteer again', async () => {
  mutex.isTaken = true;
  await leader.volunteer();
  expect(leader.isLeading).toBe(false);
  mutex.isTaken = false;
  await leader.volunteer();
  expect(leader.isLeading).toBe(true);
});

test('volunteers again after an attempt under way, which may have come too early', async () => {
  mutex.isTaken = true;
  const letGo = holdUp();
  const first = leader.volunteer();
  const second = leader.volunteer();
  await quiet();
  expect(mutex.attempts).toBe(1);
  letGo();
  await first;
  mutex.isTaken = false;
  await second;
  expect([mutex.attempts, leader.isLeading]).toEqual([2, true]);
});

test('does not lead when the store fails, and may volunteer again', async () => {
  mutex.answer = () => Promise.reject(AWAY);
  await leader.volunteer();
  expect(leader.isLeading).toBe(false);
  mutex.answer = () => Promise.resolve();
  await leader.volunteer();
  expect(leader.isLeading).toBe(true);
});

test('leads no more when its mutex is lost, and may volunteer again', async () => {
  await leader.volunteer();
  mutex.isAcquired = false;
  expect(leader.isLeading).toBe(false);
  await leader.volunteer();
  expect(leader.isLeading).toBe(true);
});

describe('a leader that resigns', () => {
  beforeEach(() => leader.volunteer());

  test('leads no more from then on, and announces it when its place is free', async () => {
    const letGo = holdUp();
    const resigned = leader.resign(true);
    expect(leader.isLeading).toBe(false);
    await quiet();
    expect(announced).toBe(0);
    letGo();
    await resigned;
    expect([mutex.isAcquired, announced]).toEqual([false, 1]);
  });

  test('announces nothing where nobody else waits', async () => {
    await leader.resign(false);
    expect([mutex.isAcquired, announced]).toEqual([false, 0]);
  });

  test('announces nothing where its place is not free', async () => {
    mutex.answer = () => Promise.reject(AWAY);
    await leader.resign(true);
    expect(announced).toBe(0);
  });

  test('volunteers no more', async () => {
    await leader.resign(true);
    await leader.volunteer();
    expect([mutex.attempts, leader.isLeading]).toEqual([1, false]);
  });
});

test('one who never led announces nothing', async () => {
  mutex.isTaken = true;
  await leader.volunteer();
  await leader.resign(true);
  expect([mutex.releases, announced]).toEqual([1, 0]);
});

test('one elected while it resigns frees the place, and announces that', async () => {
  const letGo = holdUp();
  void leader.volunteer();
  await quiet();
  const resigned = leader.resign(true);
  letGo();
  await resigned;
  expect([mutex.attempts, mutex.isAcquired, announced]).toEqual([1, false, 1]);
});
