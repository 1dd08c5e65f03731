/** A node that an administrator declares out of service (KEP-2268), and whose pods a controller then collects. */
import type { AdminClient } from '../cluster/admin-client.ts';
import { NODE } from '../interop/world.ts';
import { until } from '../until.ts';
import { MINUTES } from './attached-world.ts';

const NODE_PATH = `/api/v1/nodes/${NODE}`;
const TAINT = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };

export async function setReady(admin: AdminClient, isReady: boolean): Promise<void> {
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
  await admin.request('MERGE', `${NODE_PATH}/status`, { status: { conditions } });
}

export async function takeOutOfService(admin: AdminClient): Promise<void> {
  await setReady(admin, false);
  await admin.request('MERGE', NODE_PATH, { spec: { taints: [TAINT] } });
}

export async function returnToService(admin: AdminClient): Promise<void> {
  await setReady(admin, true);
  await admin.request('MERGE', NODE_PATH, { spec: { taints: null } });
}

/** Nobody runs its containers any more, and so nobody says that they have ended: the controller does. */
export async function collectPod(admin: AdminClient, name: string): Promise<void> {
  const path = `/api/v1/namespaces/default/pods/${name}`;
  await admin.request('DELETE', path);
  await until(
    `${name} is collected`,
    async () => (await admin.tryRequest('GET', path)).status === 404,
    MINUTES,
  );
}
