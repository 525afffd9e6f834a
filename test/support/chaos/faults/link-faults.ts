import type { FaultProxy } from '../../fault-proxy.js';
import type { Random } from '../random.js';
import { type Fault, type FaultKind, nothingToMend } from './fault.js';

/** Faults of the network between a replica and Redis; `proxies` by the replicas' indexes. */
export function linkFaults(proxies: readonly FaultProxy[]): FaultKind[] {
  return [
    linkFault('connections of a replica cut', proxies, (proxy) => ({
      target: '',
      millis: 0,
      begin: () => {
        proxy.cut();
      },
      end: nothingToMend,
    })),
    linkFault('replica cut off', proxies, (proxy, random) => ({
      target: '',
      millis: random.whole(100, 2500),
      begin: () => {
        proxy.refuse();
        proxy.cut();
      },
      end: () => proxy.accept(),
    })),
    swallowed('replies', proxies, 'toClient'),
    swallowed('calls', proxies, 'toServer'),
    linkFault('slow link', proxies, (proxy, random) => {
      const [there, back] = [random.whole(0, 150), random.whole(0, 150)];
      return {
        target: `${there} ms there and ${back} ms back`,
        millis: random.whole(300, 2000),
        begin: () => {
          proxy.toServer.delay(there);
          proxy.toClient.delay(back);
        },
        end: () => {
          proxy.toServer.pass();
          proxy.toClient.pass();
        },
      };
    }),
    linkFault('cut in the middle of replies', proxies, (proxy, random) => {
      const bytes = random.whole(0, 2000);
      let isCut: Promise<void> | undefined;
      return {
        target: `after ${bytes} bytes`,
        millis: 0,
        begin: () => {
          isCut = proxy.toClient.cutAfter(bytes);
        },
        end: () => isCut,
      };
    }),
  ];
}

function linkFault(
  name: string,
  proxies: readonly FaultProxy[],
  draw: (proxy: FaultProxy, random: Random) => Omit<Fault, 'scope'>,
): FaultKind {
  return {
    name,
    draw: (random) => {
      const index = random.whole(0, proxies.length - 1);
      const fault = draw(proxies[index]!, random);
      const what = [`replica ${index}`, fault.target, fault.millis > 0 && `for ${fault.millis} ms`];
      return {
        ...fault,
        target: what.filter(Boolean).join(', '),
        scope: `link ${index}`,
        isolates: [index],
      };
    },
  };
}

function swallowed(
  what: string,
  proxies: readonly FaultProxy[],
  direction: 'toClient' | 'toServer',
): FaultKind {
  return linkFault(`${what} swallowed`, proxies, (proxy, random) => ({
    target: '',
    millis: random.whole(100, 2500),
    begin: () => {
      proxy[direction].swallow();
    },
    end: () => {
      proxy.cut();
      proxy[direction].pass();
    },
  }));
}
