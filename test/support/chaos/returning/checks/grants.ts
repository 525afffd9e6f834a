import { overlaps } from '../../faults/fault.js';
import { type Evidence, happeningsById, visitsById } from './evidence.js';

/** Clients and Redis round times to milliseconds. */
const ROUNDING_MILLIS = 2;
/** By then a replica that is well has noticed that a connection has ended. */
const NOTICED_WITHIN_MILLIS = 500;

type Judged = Pick<Evidence, 'runs' | 'visits' | 'terms' | 'faults' | 'lateMillis'>;

/** Describes grants that are held for another time than their callers asked for, and those that are confirmed wrongly. */
export function wrongGrants(evidence: Judged): string[] {
  const visits = visitsById(evidence.visits);
  return [...happeningsById(evidence.runs)].flatMap(([id, happenings]) => {
    const terms = evidence.terms.get(id);
    if (!terms) return [];
    let lapsesAt = Infinity;
    return happenings.flatMap((happening) => {
      const { what, at } = happening;
      const violates = (how: string): string[] => [
        `${terms.key}: the grant of ${id} ${how} at ${at}`,
      ];
      if (what === 'served') return violates('was given for good');
      if (what === 'granted') {
        ({ lapsesAt } = happening.hold);
        const { millis } = happening.hold;
        if (millis === terms.keepMillis) return [];
        return violates(`was held for ${millis} ms, and not ${terms.keepMillis} ms,`);
      }
      if (what !== 'confirmed') return [];
      if (at > lapsesAt + ROUNDING_MILLIS) return violates('was confirmed after its end');
      if (happening.hold?.millis !== terms.holdMillis) return violates('became something else');
      const isForSomebody = (visits.get(id) ?? []).some(
        ({ kind, replica, sentAt, endedAt = Infinity }) => {
          const isStopped = evidence.faults.some(
            (fault) => fault.stops?.includes(replica) === true && overlaps(fault, endedAt, at),
          );
          const late = isStopped ? Infinity : evidence.lateMillis(Math.min(endedAt, at), at);
          return (
            kind === 'check' &&
            sentAt <= at + ROUNDING_MILLIS &&
            endedAt + NOTICED_WITHIN_MILLIS + late >= at
          );
        },
      );
      return isForSomebody ? [] : violates('was confirmed for nobody');
    });
  });
}
