// Loaded into a replica, by `--import`: breaks a step of its stop.
import { Server } from 'node:http';

Server.prototype.closeIdleConnections = () => {
  throw new Error('idle connections are unknown');
};
