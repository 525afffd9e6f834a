import { WakeChannel, type WakeListener } from '../../../../src/redis/waiting/wake-channel.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { ScriptedMessages } from '../../../support/waiting/scripted-messages.js';
import { WakeNumbers } from '../../../../src/redis/waiting/wake-numbers.js';
import { ManualClock } from '../../../support/manual-clock.js';

describe('the channel of wakes', () => {
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

  const NEWS = { at: 7, number: 3, millisToRoom: 12.5, waiting: 2, limits: '1000:1:5' };
  const WAKE = { ...NEWS, approved: 1, granted: ['a', 'b'] };
  const HEARD = { ...NEWS, used: 1, granted: ['a', 'b'], ended: [] };

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
    expect(one.heard).toEqual([
      'subscribed',
      HEARD,
      'leader resigned',
      'memory lost',
      'subscribed',
    ]);
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

  test('a resignation that can not be published is left to the timers', async () => {
    messages.answerPublish = () => Promise.reject(new Error('the store is down'));
    await wakes.announceResignation('k');
    expect(log.messages).toEqual(['resignation not announced']);
  });
});

describe('the numbers of wakes', () => {
  const GRACE = 50;

  let clock: ManualClock;
  let missed: number;
  let numbers: WakeNumbers;
  beforeEach(async () => {
    clock = new ManualClock(0);
    missed = 0;
    numbers = new WakeNumbers(clock, () => (missed += 1));
    await clock.advance(1000);
  });

  /** A reply whose call was sent after the last wake. */
  const replied = (number: number): string => numbers.replied(number, clock.now() + 1);
  /** A reply whose call was sent before the last wake. */
  const repliedLate = (number: number): string => numbers.replied(number, 0);

  test('wakes in their order, and replies between them, are news', () => {
    expect([replied(0), numbers.woken(1), numbers.woken(2), replied(2)]).toEqual(
      Array(4).fill('new'),
    );
    expect(clock.isAwaited).toBe(false);
  });

  test('a wake that leaves some out shows that these were missed, and is the known one from then on', () => {
    replied(3);
    expect([numbers.woken(5), numbers.woken(6), replied(6)]).toEqual(['missed', 'new', 'new']);
  });

  describe('a reply that tells of a wake that has not come', () => {
    beforeEach(() => {
      replied(3);
      expect(replied(5)).toBe('new');
      expect([numbers.isAwaiting, numbers.known]).toEqual([true, 3]);
    });

    test('shows after a grace that it was missed', async () => {
      await clock.advance(GRACE - 1);
      expect([missed, numbers.known]).toEqual([0, 3]);
      await clock.advance(1);
      expect([missed, numbers.known, numbers.isAwaiting]).toEqual([1, 5, false]);
      expect(numbers.woken(6)).toBe('new');
    });

    test('shows nothing if it comes in time, and is newer than it', async () => {
      await clock.advance(GRACE - 1);
      expect([numbers.woken(4), numbers.woken(5)]).toEqual(['late', 'late']);
      expect([numbers.isAwaiting, clock.isAwaited]).toEqual([false, false]);
      expect(numbers.woken(6)).toBe('new');
    });

    test.each<[what: string, end: () => void]>([
      ['messages are lost', () => numbers.forget()],
      ['nobody waits any more', () => numbers.end()],
    ])('sets no timer when %s', async (_what, end) => {
      end();
      expect([clock.isAwaited, missed]).toEqual([false, 0]);
      await clock.advance(GRACE);
      expect(missed).toBe(0);
    });
  });

  describe('a lower number', () => {
    beforeEach(() => {
      replied(6);
      numbers.woken(7);
    });

    test('of a wake shows that Redis has lost the key', () => {
      expect([numbers.woken(1), numbers.woken(2)]).toEqual(['missed', 'new']);
    });

    test('of a reply that the last wake may have overtaken shows nothing', () => {
      expect([repliedLate(6), numbers.known]).toEqual(['late', 7]);
    });

    test('of a reply from before the first wake shows that some may have been missed', () => {
      expect([numbers.woken(9), repliedLate(7), numbers.known]).toEqual(['missed', 'missed', 7]);
    });
  });
});
