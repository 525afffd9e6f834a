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
    change(scene, client, { replica, arrivedMillis: millis, state: 'waits' });
  },
  approved: (scene, { client, window, millis }) => {
    change(scene, client, { window, decidedMillis: millis, state: 'approved' });
  },
  lost: (scene, { client, millis }) => {
    change(scene, client, { decidedMillis: millis, state: 'lost' });
  },
  notApproved: (scene, { client, millis }) => {
    change(scene, client, { decidedMillis: millis, state: 'notApproved' });
  },
  killed: (scene, { replica, millis }) => {
    changeReplica(scene, replica, { killedMillis: millis, state: 'killed' });
  },
  passedOver: (scene, { replica, millis }) => {
    changeReplica(scene, replica, { passedOverMillis: millis, state: 'gone' });
  },
  judged: (scene, { summary }) => {
    scene.summary = summary;
  },
};

function change(scene, number, changes) {
  Object.assign(scene.clients[number - 1], changes);
}

function changeReplica(scene, wanted, changes) {
  Object.assign(
    scene.replicas.find(({ name }) => name === wanted),
    changes,
  );
}
