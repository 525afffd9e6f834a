/** An event and its time as one line. */
export function sentence(event) {
  const text = SENTENCES[event.event](event);
  return event.millis === undefined ? text : `${seconds(event.millis).padStart(6)} s  ${text}`;
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
