import { Agent, type ClientRequestArgs } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * A Service of Kubernetes, as kube-proxy makes it: a new connection goes to one of the endpoints, the next in turn, and
 * stays with it, whatever becomes of the endpoints. Nobody is in between who would try again.
 */
export class Service {
  #endpoints: readonly string[];
  /** Where clients have connected to, by host and port. */
  readonly connectedTo = new Set<string>();
  #connections = 0;

  /** @param replicas the endpoints, by their URLs */
  constructor(replicas: readonly string[]) {
    this.#endpoints = replicas;
  }

  /** Has new connections go to these from now on. */
  setEndpoints(replicas: readonly string[]): void {
    this.#endpoints = replicas;
  }

  /** The connection of a client that keeps it. */
  agent(): Agent {
    return new ServiceAgent(() => this.#connect());
  }

  #connect(): Duplex {
    const { hostname, port, host } = new URL(
      this.#endpoints[this.#connections % this.#endpoints.length]!,
    );
    this.#connections += 1;
    this.connectedTo.add(host);
    return connect(Number(port), hostname);
  }
}

class ServiceAgent extends Agent {
  constructor(private readonly open: () => Duplex) {
    super({ keepAlive: true, maxSockets: 1 });
  }

  override createConnection(_options: ClientRequestArgs): Duplex {
    return this.open();
  }
}
