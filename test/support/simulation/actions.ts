import type { SimulatedReplica } from './replica.js';
import { listIn } from './drawn-lists.js';
import { parseAlgorithm, parseFurther } from './shape.js';
import {
  type CheckTerms,
  LOSSES,
  LOSSES_OF_GROUPS,
  LOSSES_OF_HEADS,
  type NewRules,
  type World,
} from './world.js';

/** A recovery, and the time after which the first replica learns of Redis's return, with something to spare. */
const LONGEST_RETURN_MILLIS = 1000;

/** As lua/lib/recovery.lua has it: a recovery shows a longer absence of Redis, so often. */
const LONGEST_SILENCE_MILLIS = 400;
const MOST_AWAY_AGAIN = 3;

/** What one step does, from its words. @returns whether there was anything to do */
type Action = (
  world: World,
  replica: SimulatedReplica,
  words: readonly string[],
) => boolean | Promise<boolean>;

const textOption = (words: readonly string[], name: string): string | undefined =>
  words.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);

const option = (words: readonly string[], name: string): number | undefined => {
  const text = textOption(words, name);
  return text === undefined ? undefined : Number(text);
};

/**
 * Limits of a key; `most` is the greatest override that counts, -1 for none. A window, an algorithm, or further limits,
 * that are left out stay as they are.
 */
function rulesIn(words: readonly string[]): NewRules | undefined {
  const numbers = ['max', 'queue', 'window', 'most'].map((name) => option(words, name));
  const [max, queue, windowMillis, most] = numbers;
  if (max === undefined || queue === undefined) return undefined;
  const algorithm = textOption(words, 'algorithm');
  const limits = textOption(words, 'limits');
  return {
    ...(algorithm !== undefined && { algorithm: parseAlgorithm(algorithm) }),
    ...(limits !== undefined && { further: parseFurther(limits) }),
    ...(windowMillis !== undefined && { windowMillis }),
    maxRequests: max,
    maxRequestsInQueue: queue,
    ...(most !== undefined && {
      ceilings: { maxRequests: most, maxRequestsInQueue: most, windowMillis: most },
    }),
  };
}

/** Whether replicas may still be putting their waiters back. */
function isComingBack({ backAt, now, replicas }: World): boolean {
  return (
    now < backAt + LONGEST_RETURN_MILLIS || replicas.some(({ connection }) => connection.isBroken)
  );
}

/** The terms of a check that are numbers, by their words in a step. */
const NUMBERS = {
  max: 'maxRequests',
  queue: 'maxRequestsInQueue',
  window: 'windowMillis',
  limit: 'maxWaitMillis',
  hits: 'hits',
  hold: 'holdMillis',
  keep: 'keepMillis',
  answer: 'answerMillis',
};

function termsIn(words: readonly string[]): CheckTerms {
  const list = listIn(textOption(words, 'list'));
  const numbers = Object.entries(NUMBERS).flatMap(([word, name]) => {
    const number = option(words, word);
    return number === undefined ? [] : [[name, number] as const];
  });
  return { canWait: words.includes('wait'), ...Object.fromEntries(numbers), ...(list && { list }) };
}

function running(action: Action): Action {
  return (world, replica, words) => replica.isRunning && action(world, replica, words);
}

/** By the first word of a step; the second names a replica. */
const ACTIONS: Readonly<Record<string, Action>> = {
  /**
   * ask A c1 [named] [wait] [limit=N] [keep=N] [answer=N] [hits=N] [hold=N] [list=lane:a:N] [max=N] [queue=N] [window=N]:
   * `limit` is the longest wait in ms; `list` is a lane or a group as `DrawnLists` writes it; of a named request the caller has chosen the id, and its place can be kept for `keep` ms; `answer` is
   * the longest wait for an answer
   */
  ask: (world, replica, words) => {
    const [id = ''] = words;
    if (replica.life !== 'up' || world.requests.has(id)) return false;
    world.ask(replica, id, termsIn(words), words.includes('named'));
    return true;
  },
  /** again A c1 [wait] [limit=N] ...: the caller of a named request asks with its id again, as after a lost connection */
  again: (world, replica, words) => {
    const request = world.requests.get(words[0] ?? '');
    if (replica.life !== 'up' || !request?.isNamed) return false;
    world.askAgain(replica, request, termsIn(words));
    return true;
  },
  /** rules A max=N queue=N [window=N] [most=N] [algorithm=...] [limits=...]: as `rulesIn` has it, other rules of the key there */
  rules: (world, replica, words) => {
    const rules = rulesIn(words);
    if (!replica.isAlive || !rules) return false;
    world.giveRules(replica, rules);
    return true;
  },
  /** leave A c1: its connection to its replica closes */
  leave: running((world, replica, [name = '']) => {
    const client = world.clients.get(name);
    if (client?.replica !== replica.name || client.presence.isDisconnected) return false;
    client.presence.disconnect();
    return true;
  }),
  /** pause A N [group=x]: the key, or one of its groups, is paused for N milliseconds; 0 ends the pause */
  pause: (world, replica, [millis, ...words]) => {
    if (replica.life !== 'up' || millis === undefined) return false;
    world.pause(replica, Number(millis), textOption(words, 'group'));
    return true;
  },
  /** report A remaining=N [reset=N] [limit=a]: what a vendor says remains, which resets in N milliseconds */
  report: (world, replica, words) => {
    const remaining = option(words, 'remaining');
    if (replica.life !== 'up' || remaining === undefined) return false;
    world.report(replica, {
      remaining,
      resetMillis: option(words, 'reset'),
      limit: textOption(words, 'limit'),
    });
    return true;
  },
  /** refund A N: up to N hits of the key are given back without the approvals that took them */
  refund: (world, replica, [hits]) => {
    if (replica.life !== 'up' || hits === undefined) return false;
    world.refund(replica, Number(hits));
    return true;
  },
  /** release A c1: its approval, or, with a named request, its place */
  release: (world, replica, [name = '']) => {
    const client = world.clients.get(name);
    const canBe = client?.outcome === 'approved' || client?.request.isNamed;
    if (replica.life !== 'up' || !canBe) return false;
    world.release(replica, client.request.id);
    return true;
  },
  /** amend A c1 [hits=N] [hold=N]: its approval takes this many hits from now on, and its hold is renewed */
  amend: (world, replica, [name = '', ...words]) => {
    const client = world.clients.get(name);
    if (replica.life !== 'up' || client?.outcome !== 'approved') return false;
    world.amend(replica, client.request.id, {
      hits: option(words, 'hits'),
      holdMillis: option(words, 'hold'),
    });
    return true;
  },
  tick: running((_world, replica) => replica.tick()),
  ring: running((_world, replica) => replica.clock.ring()),
  run: (world, replica) => !world.isRedisAway && world.runFirst(replica),
  answer: running((_world, { connection }) => connection.answerFirst()),
  'lose-call': running((_world, { connection }) => connection.loseFirst()),
  'lose-answer': running((_world, { connection }) => connection.loseAnswer()),
  refuse: running(
    (world, { connection }) =>
      (!world.shape.isPrompt || world.isRedisAway) && connection.refuseFirst(),
  ),
  'time-out': running((_world, { connection }) => connection.giveUpLate()),
  mend: running((world, { connection, room }) => {
    if (world.isRedisAway || !connection.isBroken) return false;
    connection.mend();
    room.onStoreAvailable();
    return true;
  }),
  subscribe: (world, { mailbox }) => !world.isRedisAway && mailbox.hearAsked(),
  hear: running((_world, { mailbox }, [index]) => mailbox.read(Number(index ?? 0))),
  drop: (world, { mailbox }, [index]) => {
    world.hasLostMessages = true;
    return mailbox.drop(Number(index ?? 0));
  },
  double: (_world, { mailbox }, [index]) => mailbox.double(Number(index ?? 0)),
  reconnect: (_world, { mailbox }) => mailbox.reconnect(),
  freeze: (world, replica) => {
    if (replica.life !== 'up') return false;
    replica.life = 'frozen';
    replica.history.lost();
    world.lateReplicas.add(replica.name);
    world.connectionsEnded(replica);
    return true;
  },
  thaw: (world, replica) => {
    if (replica.life !== 'frozen') return false;
    replica.life = 'up';
    if (!world.isRedisAway) replica.history.regained();
    replica.onceThawed?.();
    replica.onceThawed = undefined;
    return true;
  },
  kill: (world, replica) => {
    if (!replica.isAlive) return false;
    world.connectionsEnded(replica);
    replica.life = 'dead';
    replica.mailbox.close();
    return true;
  },
  stop: (world, replica) => {
    // `stopInOrder` gives them the time that they need.
    const isAnswering = [...world.clients.values()].some(
      (client) => client.replica === replica.name && !client.canWait && !client.outcome,
    );
    if (replica.life !== 'up' || isAnswering) return false;
    replica.close();
    return true;
  },
};

/** Steps of the world as a whole. */
const WORLD_ACTIONS: Readonly<
  Record<string, (world: World, words: readonly string[]) => boolean | Promise<boolean>>
> = {
  /** pass N: milliseconds */
  pass: (world, [millis]) => world.pass(Number(millis)),
  /** reload max=N queue=N [window=N] [most=N] [algorithm=...] [limits=...]: as `rules`, for all replicas at once */
  reload: (world, words) => {
    const rules = rulesIn(words);
    const alive = world.replicas.filter(({ isAlive }) => isAlive);
    if (!rules || alive.length === 0) return false;
    for (const replica of alive) world.giveRules(replica, rules);
    return true;
  },
  forget: async (world, [what = '']) => {
    // After a step of the clock, tickets no longer show that Redis has lost a key.
    const isKnown = [LOSSES, LOSSES_OF_HEADS, LOSSES_OF_GROUPS].some((losses) => what in losses);
    if (!isKnown || world.isRedisAway || world.behindMillis > 0) return false;
    await world.loseMemory(what);
    return true;
  },
  /** clock-back N: Redis's clock goes back by N milliseconds */
  'clock-back': (world, [millis]) => {
    if (world.hasLostMemory) return false;
    world.setClockBack(Number(millis));
    return true;
  },
  away: (world) => {
    const isAgain = isComingBack(world);
    const isTooOften = world.shape.isPrompt && isAgain && world.timesAwayAgain >= MOST_AWAY_AGAIN;
    if (world.isRedisAway || isTooOften) return false;
    world.timesAwayAgain = isAgain ? world.timesAwayAgain + 1 : 0;
    world.isRedisAway = true;
    world.wasRedisAway = true;
    world.awayAt = world.now;
    for (const { history } of world.replicas) history.lost();
    return true;
  },
  back: (world) => {
    const is = world.isRedisAway;
    world.isRedisAway = false;
    if (!is) return false;
    world.backAt = world.now;
    const isTooShort = world.now - world.awayAt <= LONGEST_SILENCE_MILLIS;
    // Replicas that were not back have less time than they need.
    if (world.timesAwayAgain > 0 && isTooShort) {
      for (const { name } of world.replicas) world.lateReplicas.add(name);
    }
    for (const { life, history } of world.replicas) if (life !== 'frozen') history.regained();
    return true;
  },
};

/**
 * Does one step, and all that follows from it at once.
 * @returns whether there was anything to do: where steps before it were left out, there may not be
 * @throws Violation of an invariant
 */
export async function act(world: World, step: string): Promise<boolean> {
  const [verb = '', ...words] = step.split(' ');
  const [who = '', ...others] = words;
  const mark = world.trace.length;
  const replica = world.replica(who);
  const worldAction = WORLD_ACTIONS[verb];
  const action = ACTIONS[verb];
  if (!worldAction && !action) throw new Error(`no such step: ${step}`);
  let isDone = false;
  world.trace.push(step);
  try {
    if (worldAction) isDone = await worldAction(world, words);
    else if (action && replica) isDone = await action(world, replica, others);
    await world.quiet();
  } finally {
    if (!isDone && world.trace.length === mark + 1) world.trace.pop();
  }
  return isDone;
}
