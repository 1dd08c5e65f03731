/** What `--help` says beyond the list of options. */
import { SETTINGS } from '../config/setting.ts';
import { wrap } from '../../mount/text/table.ts';

const HELP_CHARACTERS_MAX = 80;

export const PROGRAM_NOTES = `
Examples:
  mooring status                    what is mounted and what is not
  mooring status -w                 the same, kept up to date
  mooring explain default/web       why pod web waits
  mooring wait web --timeout 5m     until its volumes are there
  mooring quarantine list           volumes that another node may have
  mooring manifests list            what is kept although its manifest is gone
  mooring plan                      what an agent would do if it started now
  mooring agent --config my.yaml    serve this node (usually systemd does)

Exit codes:
  0 done, 1 failed, 2 wrong usage,
  75 another agent holds the root, 78 wrong configuration or mount namespace,
  124 not in time; mooring plan: 3 pods would lose volumes`;

export const STATUS_NOTES = `
Examples:
  mooring status -o wide
  mooring status -o json | jq '.pods[] | select(.ready | not) | .name'`;

export const EXPLAIN_NOTES = `
Examples:
  mooring explain web
  mooring explain default/web
  mooring explain pvc-0f3a9c52-7b1e-4b43-9a55-2d7c3f1e8b60
  mooring explain volume:data       when a pod has the same name`;

export const MOUNTS_NOTES = `
A pod is called by its name, namespace/name or uid. Nothing is printed for
podman or a unit before all volumes of the container are there. The words for
podman are quoted for a shell where they need it; then they have to go through
eval.

Examples:
  mooring mounts default/web
  podman run $(mooring mounts web -o podman) my/image
  mooring mounts web -c main -o systemd`;

export const RENDER_NOTES = `
Examples:
  mooring render web.yaml | podman kube play -`;

export const WAIT_NOTES = `
Examples:
  mooring wait default/web
  ExecStartPre=+/usr/local/bin/mooring wait web --timeout 80s`;

export const RELEASE_NOTES = `
What a process or a container still has of the pod stays until it has ended, and
who that is is said. With --force it is taken down all the same.

Examples:
  mooring release default/web
  ExecStopPost=/usr/local/bin/mooring release web --timeout 80s`;

export const QUARANTINE_NOTES = `
The volume is called by its PersistentVolume, its handle or its id.

Examples:
  mooring quarantine list
  mooring quarantine add pvc-0f3a9c52-7b1e-4b43-9a55-2d7c3f1e8b60
  mooring quarantine clear vol-logs --yes`;

export const MANIFEST_NOTES = `
Examples:
  mooring manifests list
  mooring manifests accept          after a replacement that was meant`;

export const FORGET_NOTES = `
A pod is called by its name, namespace/name or uid.

Examples:
  mooring forget default/web
  mooring forget --all`;

export const PLAN_NOTES = `
Examples:
  mooring plan                      before the first start, or after a change
  mooring plan --adopt --root /var/lib/kubelet --kubeconfig node.kubeconfig
  mooring plan -o json | jq '.volumes[].places[] | select(.action == "take-down")'

Exit codes:
  0 nothing is taken from a pod that is wanted
  1 not all could be read, or there is no plan
  3 a volume would be taken from a pod that is wanted
  75 an agent runs (mooring status), 78 an agent would not start`;

export const AGENT_NOTES = `
Settings of the file, with their defaults:
${settingsText()}`;

function settingsText(): string {
  return SETTINGS.map(({ key, default: byDefault, meaning, range }) => {
    const indented = wrap(`${meaning} (${range})`, HELP_CHARACTERS_MAX - 6).map((line) => `      ${line}`);
    return [`  ${key}: ${byDefault}`, ...indented].join('\n');
  }).join('\n');
}

/** What the option of a setting is for. */
export function meaningOf(key: string): string {
  const setting = SETTINGS.find((one) => one.key === key);
  return setting === undefined ? '' : setting.meaning;
}
