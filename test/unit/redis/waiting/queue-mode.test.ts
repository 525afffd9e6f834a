import {
  nextMode,
  type QueueEvent,
  type QueueMode,
  TRANSITIONS,
} from '../../../../src/redis/waiting/queue-mode.js';

const MODES = Object.keys(TRANSITIONS) as QueueMode[];
const EVENTS = [...new Set(MODES.flatMap((mode) => Object.keys(TRANSITIONS[mode])))];
const CELLS = MODES.flatMap((mode) =>
  EVENTS.map((event) => ({ mode, event, next: TRANSITIONS[mode][event as QueueEvent] })),
) as { mode: QueueMode; event: QueueEvent; next: QueueMode | undefined }[];

/** The modes with a settle call under way. */
const CALLING: readonly QueueMode[] = ['settling', 'resettling'];
const LIVING = MODES.filter((mode) => mode !== 'over');

/** The modes that some events can lead to. */
function reachableFrom(start: QueueMode): Set<QueueMode> {
  const reached = new Set([start]);
  for (const mode of reached) {
    for (const next of Object.values(TRANSITIONS[mode])) reached.add(next);
  }
  return reached;
}

test('a new queue can reach every mode', () => {
  expect([...reachableFrom('asking')].sort()).toEqual([...MODES].sort());
});

test.each(LIVING)(
  'a queue that is %s is over once it is empty, and after no other event',
  (mode) => {
    const ends = CELLS.filter((cell) => cell.mode === mode && cell.next === 'over');
    expect(ends.map(({ event }) => event)).toEqual(['emptied']);
  },
);

test('a queue that is over stays over, and takes no further request', () => {
  expect([...reachableFrom('over')]).toEqual(['over']);
  expect(() => nextMode('over', 'asked')).toThrow();
  expect(() => nextMode('over', 'ticketed')).toThrow();
});

test('a settle call begins only when the turn of a queue in line has come', () => {
  const begins = CELLS.filter(
    ({ mode, next }) => next !== undefined && CALLING.includes(next) && !CALLING.includes(mode),
  );
  expect(begins).toEqual([{ mode: 'inLine', event: 'begun', next: 'settling' }]);
});

test('a queue has only one call under way at a time', () => {
  for (const mode of CALLING) expect(() => nextMode(mode, 'begun')).toThrow();
});

test('an answer or a failure ends a call, and comes only during a call', () => {
  for (const mode of LIVING) {
    for (const event of ['answered', 'failed'] as const) {
      if (CALLING.includes(mode)) expect(CALLING).not.toContain(nextMode(mode, event));
      else expect(() => nextMode(mode, event)).toThrow();
    }
  }
});

test.each(CELLS.filter(({ next }) => next === undefined))(
  '$event of a queue that is $mode is an error',
  ({ mode, event }) => {
    expect(() => nextMode(mode, event)).toThrow(`a queue that is ${mode} can't be ${event}`);
  },
);
