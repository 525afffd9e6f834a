import { MAX_REQUESTS } from './setting.mjs';

/** An event and its time as one line. */
export function sentence(event) {
  const text = SENTENCES[event.event](event);
  return event.millis === undefined ? text : `${seconds(event.millis).padStart(6)} s  ${text}`;
}

/**
 * Prints events as lines. A window gets one line, once it is full or over, with all that it has approved.
 * @param print prints a line
 * @returns to be called with each event
 */
export function linePrinter(print) {
  /** The last event of each window that is not printed. */
  const open = new Map();
  let printed = 0;
  const close = (end) => {
    for (const [number, event] of [...open].filter(([number]) => number <= end)) {
      open.delete(number);
      print(sentence(event));
      printed = number;
    }
  };
  return (event) => {
    if (event.event !== 'window') {
      if (event.event === 'judged') close(Infinity);
      print(sentence(event));
      return;
    }
    // What the window before has approved may come to light after this one has begun.
    if (event.window <= printed) return;
    open.set(event.window, event);
    close(event.approved < MAX_REQUESTS ? event.window - 2 : event.window);
  };
}

/** Milliseconds as seconds with two digits. */
export function seconds(millis) {
  return (millis / 1000).toFixed(2);
}

/** The two lines of explanation. */
export function explanation({ clients, maxRequests, windowMillis }) {
  return [
    `Sluice: ${clients} clients wait their turn at three replicas that share one limit.`,
    `${maxRequests} are approved in each window of ${windowMillis / 1000} s, in their order. One replica is killed.`,
  ];
}

const SENTENCES = {
  begun: (event) => explanation(event).join('\n'),
  started: ({ process, pid, port }) => `${process} is process ${pid}, on port ${port}`,
  filled: ({ approved }) => `${approved} earlier requests are approved, so window 1 is full`,
  window: ({ window, approved }) => `window ${window}: ${approved} approved`,
  arrived: ({ client, replica }) => `client ${client} waits at replica ${replica}`,
  approved: ({ client, replica, window }) =>
    `client ${client} is approved by replica ${replica} in window ${window}`,
  killed: ({ replica }) => `replica ${replica} is killed (SIGKILL)`,
  lost: ({ client, replica }) => `client ${client} loses its connection to replica ${replica}`,
  returned: ({ client, replica }) => `client ${client} comes back, at replica ${replica}`,
  notApproved: ({ client, status }) => `client ${client} is answered with ${status}`,
  judged: ({ summary }) => summary,
};
