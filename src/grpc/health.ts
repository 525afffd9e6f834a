import type { handleServerStreamingCall, Server } from '@grpc/grpc-js';
import { HealthImplementation, type ServingStatus } from 'grpc-health-check';

import { systemClock } from '../common/clock.js';
import { isReadySoon, type Readiness } from '../readiness/readiness.js';
import { RATE_LIMIT_SERVICE } from './proto.js';

/** The path of a stream without end. */
export const WATCH_PATH = '/grpc.health.v1.Health/Watch';

/** How long a change of the readiness may take to be reported. */
const INTERVAL_MILLIS = 1000;
/** The process as a whole, and the rate limit service, also by the only name that Envoy's own has for it. */
const SERVICES = ['', RATE_LIMIT_SERVICE, 'ratelimit'];

type Watch = handleServerStreamingCall<
  { readonly service: string },
  { readonly status: ServingStatus | 'SERVICE_UNKNOWN' }
>;

/** gRPC's health service, which reports the readiness: https://github.com/grpc/grpc/blob/master/doc/health-checking.md */
export class Health {
  readonly #service = new HealthImplementation();
  #status: ServingStatus | undefined;
  #isOver = false;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly readiness: Readiness) {
    this.#set('NOT_SERVING');
  }

  addTo(server: Server): void {
    this.#service.addToServer({
      addService: (service, handlers) =>
        server.addService(service, {
          ...handlers,
          watch: watchingKnown(handlers.watch as unknown as Watch),
        }),
    });
  }

  /** Resolves when the readiness is reported for the first time. It is kept up to date from then on. */
  async begin(): Promise<void> {
    const isReady = await isReadySoon(this.readiness, systemClock);
    if (this.#isOver) return;
    this.#set(isReady ? 'SERVING' : 'NOT_SERVING');
    this.#cancelTimer = systemClock.after(INTERVAL_MILLIS, () => void this.begin());
  }

  /** Reports from now on that requests should go elsewhere. */
  end(): void {
    this.#isOver = true;
    this.#cancelTimer?.();
    this.#set('NOT_SERVING');
  }

  #set(status: ServingStatus): void {
    // The service notifies watchers at each call, whether or not the status has changed.
    if (status === this.#status) return;
    this.#status = status;
    for (const service of SERVICES) this.#service.setStatus(service, status);
  }
}

/** Watches as `watch` does, but only known services: `watch` would keep every unknown name for ever. */
function watchingKnown(watch: Watch): Watch {
  return (call) => {
    if (SERVICES.includes(call.request.service)) watch(call);
    else call.write({ status: 'SERVICE_UNKNOWN' });
  };
}
