import type { Evidence } from './evidence.js';

/** Describes approvals that broke the order of arrival, in Redis's own order. */
export function brokenOrder({ runs }: Pick<Evidence, 'runs'>): string[] {
  const queues = new Map<string, Map<string, number>>();
  const lastTickets = new Map<string, number>();
  const tickets = new Map<string, number>();
  return runs.flatMap(({ key, at, happenings }) => {
    const queue = queues.get(key) ?? new Map<string, number>();
    queues.set(key, queue);
    const waitedBefore = new Set(queue.keys());
    const violations: string[] = [];
    const violates = (id: string, what: string): void => {
      violations.push(`${key}: ${id} ${what} at ${at}`);
    };
    const served: { id: string; ticket: number }[] = [];
    for (const happening of happenings) {
      const { id, what } = happening;
      if (what === 'joined') {
        const { ticket } = happening;
        const last = lastTickets.get(key) ?? 0;
        const isPutBack = tickets.get(id) === ticket;
        if (ticket <= last && !isPutBack) violates(id, `got ticket ${ticket} after ${last}`);
        lastTickets.set(key, Math.max(last, ticket));
        tickets.set(id, ticket);
        queue.set(id, ticket);
      } else if (what === 'granted' || what === 'served') {
        served.push({ id, ticket: queue.get(id)! });
        queue.delete(id);
      } else if (what === 'withdrawn') queue.delete(id);
    }
    for (const { id, ticket } of served) {
      const overtaken = [...queue].filter(([, other]) => other < ticket);
      if (overtaken.length > 0) {
        violates(id, `(ticket ${ticket}) overtook ${overtaken.map(([other]) => other).join()}`);
      }
    }
    for (const { id } of happenings.filter(({ what }) => what === 'approved')) {
      const passed = [...queue.keys()].filter((other) => waitedBefore.has(other));
      if (passed.length > 0) violates(id, `was approved at once while ${passed.join()} waited`);
    }
    return violations;
  });
}
