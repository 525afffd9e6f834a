/**
 * The state after a list of events: of each client and replica, and of the windows.
 * @param events all events so far
 */
export function sceneOf(events) {
  const scene = { clients: [], replicas: [], windows: new Map() };
  for (const event of events) CHANGES[event.event]?.(scene, event);
  return scene;
}

const CHANGES = {
  begun: (scene, { clients, replicas, maxRequests, windowMillis }) => {
    scene.maxRequests = maxRequests;
    scene.windowMillis = windowMillis;
    scene.clients = Array.from({ length: clients }, (_, i) => ({ number: i + 1, state: 'absent' }));
    scene.replicas = replicas.map((name) => ({ name, state: 'starts' }));
  },
  started: (scene, { process }) => {
    const replica = scene.replicas.find(({ name }) => process === `replica ${name}`);
    if (replica) replica.state = 'serves';
  },
  window: (scene, { window, approved, millis }) => {
    scene.windows.set(window, { number: window, approved, millis });
  },
  arrived: (scene, { client, replica, millis }) => {
    const stays = [{ replica, from: millis, to: undefined }];
    change(scene, client, { replica, stays, state: 'waits' });
  },
  lost: (scene, { client, millis }) => {
    change(scene, client, { state: 'lost' });
    endStay(scene, client, millis);
  },
  returned: (scene, { client, replica, millis }) => {
    change(scene, client, { replica, state: 'waits', hasReturned: true });
    clientOf(scene, client).stays.push({ replica, from: millis, to: undefined });
  },
  approved: (scene, { client, window, millis }) => {
    change(scene, client, { window, state: 'approved' });
    endStay(scene, client, millis);
  },
  notApproved: (scene, { client, millis }) => {
    change(scene, client, { state: 'notApproved' });
    endStay(scene, client, millis);
  },
  killed: (scene, { replica, millis }) => {
    changeReplica(scene, replica, { killedMillis: millis, state: 'killed' });
  },
  judged: (scene, { summary }) => {
    scene.summary = summary;
  },
};

function clientOf(scene, number) {
  return scene.clients[number - 1];
}

function change(scene, number, changes) {
  Object.assign(clientOf(scene, number), changes);
}

/** A stay is the time that a client waits at one replica, from the loss of one connection to the next. */
function endStay(scene, number, millis) {
  clientOf(scene, number).stays.at(-1).to = millis;
}

function changeReplica(scene, wanted, changes) {
  Object.assign(
    scene.replicas.find(({ name }) => name === wanted),
    changes,
  );
}
