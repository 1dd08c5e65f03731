/** What systemd/node-watch.yaml gives to nodes, given as an administrator would. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { AdminClient } from './admin-client.ts';

const CREATED = 201;
const ALREADY_THERE = 409;
const NODE_WATCH = new URL('../../systemd/node-watch.yaml', import.meta.url);

/** Beside the rights of a node: attachments may be watched. Nothing is done where it is there. */
export async function allowWatchOfAttachments(admin: AdminClient): Promise<void> {
  for (const document of parseAllDocuments(readFileSync(NODE_WATCH, 'utf8'))) {
    const object = document.toJS() as { readonly kind: string };
    const collection = `${object.kind.toLowerCase()}s`;
    const path = `/apis/rbac.authorization.k8s.io/v1/${collection}`;
    const { status } = await admin.tryRequest('POST', path, object);
    assert.ok(status === CREATED || status === ALREADY_THERE, `${path}: ${status}`);
  }
}
