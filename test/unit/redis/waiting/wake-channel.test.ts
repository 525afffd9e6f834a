import { WakeChannel, type WakeListener } from '../../../../src/redis/waiting/wake-channel.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { ScriptedMessages } from '../../../support/waiting/scripted-messages.js';

let messages: ScriptedMessages;
let log: RecordedLog;
let wakes: WakeChannel;
beforeEach(() => {
  messages = new ScriptedMessages();
  log = recordLog('debug');
  wakes = new WakeChannel(messages, 'r1', log.logger);
});

/** Notes the messages that it gets. */
class Listener implements WakeListener {
  readonly heard: unknown[] = [];
  onSubscribed(): void {
    this.heard.push('subscribed');
  }
  onWake(wake: unknown): void {
    this.heard.push(wake);
  }
  onLeaderResigned(): void {
    this.heard.push('leader resigned');
  }
  onMemoryLost(): void {
    this.heard.push('memory lost');
  }
}

const WAKE = { millisToRoom: 12.5, waiting: 2, granted: ['a', 'b'] };
const HEARD = { ...WAKE, ended: [] };

test('a listener gets the messages of its channel, from the subscription on', () => {
  const [one, other] = [new Listener(), new Listener()];
  wakes.listen('one', one);
  wakes.listen('other', other);
  expect([...messages.channels]).toEqual(['one', 'other']);
  messages.confirm('one');
  messages.say('one', WAKE);
  messages.say('one', { leaderResigned: true });
  messages.say('one', { memoryLost: true });
  messages.confirm('one');
  expect(one.heard).toEqual(['subscribed', HEARD, 'leader resigned', 'memory lost', 'subscribed']);
  expect(other.heard).toEqual([]);
});

test('a listener gets its own replica’s claims, and all without an owner', () => {
  const listener = new Listener();
  wakes.listen('k', listener);
  const granted = ['a', 'b#r1#3', 'c#r2#1'];
  messages.say('k', { ...WAKE, granted, ended: ['d#r1#4!taken_over', 'e#r2#2!withdrawn'] });
  const ended = [{ claim: 'd#4', why: 'taken_over' }];
  expect(listener.heard).toEqual([{ ...HEARD, granted: ['a', 'b#3'], ended }]);
});

test.each(['', 'null', '{}', '{"granted":[]}', '{"memoryLost":false}', '[1]', 'wake'])(
  'an unknown message is ignored and logged: %j',
  (text) => {
    const listener = new Listener();
    wakes.listen('k', listener);
    messages.say('k', text);
    expect(listener.heard).toEqual([]);
    expect(log.messages).toEqual(['unknown message on a wake channel ignored']);
  },
);

test('a listener that has left gets no messages', () => {
  const listener = new Listener();
  wakes.listen('k', listener);
  wakes.unlisten('k', listener);
  expect([...messages.channels]).toEqual([]);
  messages.confirm('k');
  messages.say('k', WAKE);
  expect(listener.heard).toEqual([]);
});

test('a listener that leaves late does not take the channel from its successor', () => {
  const [before, after] = [new Listener(), new Listener()];
  wakes.listen('k', before);
  wakes.listen('k', after);
  wakes.unlisten('k', before);
  messages.say('k', WAKE);
  expect([before.heard, after.heard]).toEqual([[], [HEARD]]);
  expect([...messages.channels]).toEqual(['k']);
});

test('a resignation is published', async () => {
  await wakes.announceResignation('k');
  expect(messages.published).toEqual([['k', { leaderResigned: true }]]);
});

test('a resignation that can not be published is left to the timers', async () => {
  messages.answerPublish = () => Promise.reject(new Error('the store is down'));
  await wakes.announceResignation('k');
  expect(log.messages).toEqual(['resignation not announced']);
});
