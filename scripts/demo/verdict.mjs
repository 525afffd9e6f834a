/**
 * Checks the events of a story.
 * @returns `problems`, a sentence for each broken promise, and `summary`, one line
 */
export function judge(events) {
  const all = (name) => events.filter(({ event }) => event === name);
  const { clients, maxRequests } = all('begun')[0];
  const approved = all('approved');
  const rejected = all('notApproved');
  const killed = all('killed').map(({ replica }) => replica);
  const counts = new Map(all('window').map(({ window, approved }) => [window, approved]));
  const lost = all('lost');
  const problems = [
    ...orderProblems(all('arrived'), approved),
    ...repetitions(approved),
    ...[...counts]
      .filter(([, count]) => count > maxRequests)
      .map(([window, count]) => `${count} were approved in window ${window}`),
    ...lost
      .filter(({ replica }) => !killed.includes(replica))
      .map(({ client, replica }) => `client ${client} lost its connection to replica ${replica}`),
    ...rejected.map(({ client, status }) => `client ${client} was answered with ${status}`),
    ...unaccounted(counts, all('filled')[0].approved + approved.length),
  ];
  const decided = new Set([...approved, ...rejected].map(({ client }) => client));
  if (decided.size < clients) problems.push(`${clients - decided.size} clients got no answer`);
  if (killed.length === 0) problems.push('no replica was killed');
  else if (lost.length === 0) problems.push('no client waited at the replica that was killed');
  const summary =
    problems.length > 0
      ? `verdict: BROKEN: ${problems.join('; ')}`
      : `verdict: all ${approved.length} approved in their order, at most ${maxRequests} in each of ${counts.size} ` +
        `windows, none twice; ${lost.length} of them came back after replica ${killed.join()} was killed`;
  return { problems, summary };
}

/** No client was approved before a client that came earlier. */
function orderProblems(arrived, approved) {
  const position = new Map(arrived.map(({ client }, index) => [client, index]));
  return approved.slice(1).flatMap(({ client }, index) => {
    const before = approved[index].client;
    return position.get(client) < position.get(before)
      ? [`client ${client} was approved after client ${before}`]
      : [];
  });
}

function repetitions(approved) {
  const seen = new Set();
  return approved.flatMap(({ client }) => {
    if (seen.has(client)) return [`client ${client} was approved twice`];
    seen.add(client);
    return [];
  });
}

/** Redis has counted only approvals of known clients. */
function unaccounted(counts, known) {
  const counted = [...counts.values()].reduce((sum, approved) => sum + approved, 0);
  return counted === known ? [] : [`Redis counts ${counted} approvals, and ${known} are known`];
}
