/** iSCSI by iscsiadm(8) in the broker of tools that wait for servers, and by sysfs in one that reads paths. */
import type { ToolAnswer } from '../../broker/broker-protocol.ts';
import type { IscsiRecord, QuestionOwner } from '../../broker/device/iscsi-record.ts';
import { done, fail, ok, type Result } from '../../failure.ts';
import type { IscsiLogin, IscsiSession, IscsiSessions, IscsiWay } from '../../block-devices.ts';
import { isSameWay } from '../../block-devices.ts';
import {
  codeOfExit,
  DATABASES,
  deleteDiscovery,
  deleteNode,
  discover,
  DISCOVERY_MS,
  DISCOVERY_SETTINGS,
  EXIT,
  logIn,
  LOGIN_MS,
  logOut,
  LOGOUT_MS,
  newDiscovery,
  newNode,
  RECORD_MS,
  recordNameOf,
  scan,
  SCAN_MS,
  SESSION_SETTINGS,
  targetsIn,
} from '../../iscsi/iscsi-tools.ts';
import { endOf, type ToolReport, type ToolRequest } from '../../tool.ts';

export interface IscsiParts {
  readonly runTool: (request: ToolRequest) => Promise<ToolAnswer>;
  readonly readSessions: () => Promise<Result<readonly IscsiSession[]>>;
  readonly writeRecord: (record: IscsiRecord) => Promise<Result<void>>;
  readonly ownerOfQuestion: (record: Omit<IscsiRecord, 'settings'>) => Promise<Result<QuestionOwner>>;
  /** Tasks of one key go one after the other. */
  readonly inTurn: <T>(key: string, task: () => Promise<T>) => Promise<T>;
}

/** All of one portal goes one after the other: what is written down of it is written for the call that follows. */
export function createIscsi(parts: IscsiParts): IscsiSessions {
  const { readSessions, inTurn } = parts;
  const records = new IscsiRecords(parts);

  async function logInTo(login: IscsiLogin): Promise<Result<'made' | 'found'>> {
    const offered = await records.isOffered(login);
    if (!offered.ok) return offered;
    const entered = await enter(login);
    if (entered.ok || entered.failure.effect !== 'none') return entered;
    // It may hold a password. A session that somebody has begun meanwhile is his, and keeps it.
    const forgotten = await records.forgetNode(login);
    return forgotten.ok ? entered : forgotten;
  }

  async function enter(login: IscsiLogin): Promise<Result<'made' | 'found'>> {
    const record = await records.makeNode(login);
    if (!record.ok) return record;
    if (record.value === 'in use') return ok('found');
    const tool = 'iscsiadm';
    const report = await parts.runTool({ tool, argv: logIn(login), deadlineMs: LOGIN_MS });
    if (!report.ok || isDone(report.value)) return report.ok ? ok('made') : report;
    const { exitCode, deadlinePassed } = report.value;
    if (exitCode === EXIT.sessionExists) return ok('found');
    const code = deadlinePassed ? 'target-unreachable' : codeOfExit(exitCode);
    // Whatever else it says, its daemon may have begun the session and not told it.
    const effect = deadlinePassed || code === 'input-output' ? 'unknown' : 'none';
    return fail({ code, message: endOf(tool, report.value), effect, blocker: login.portal });
  }

  async function logOutOf(way: IscsiWay): Promise<Result<void>> {
    const sessions = await readSessions();
    if (!sessions.ok) return sessions;
    for (const { number } of sessions.value.filter((one) => isSameWay(one, way))) {
      const ended = await records.run('iscsiadm', logOut(number), LOGOUT_MS);
      if (!ended.ok) return ended;
    }
    const after = await readSessions();
    if (!after.ok) return after;
    if (!after.value.some((one) => isSameWay(one, way))) return records.forgetNode(way);
    const message = `iscsiadm has logged out of ${way.iqn} at ${way.portal}, and the session is there`;
    return fail({ code: 'input-output', message, effect: 'unknown', blocker: way.portal });
  }

  return {
    readIscsiSessions: readSessions,
    logInToIscsi: (login) => inTurn(login.portal, () => logInTo(login)),
    logOutOfIscsi: (way) => inTurn(way.portal, () => logOutOf(way)),
    scanIscsi: ({ number }) => records.run('iscsiadm', scan(number), SCAN_MS),
    removeMultipath: (map) => records.run('multipath', ['-f', map], RECORD_MS),
  };
}

/** What is written into the database of open-iscsi, and taken out of it again. */
class IscsiRecords {
  readonly #parts: IscsiParts;

  constructor(parts: IscsiParts) {
    this.#parts = parts;
  }

  /**
   * Does the portal offer the target? What was asked with is not kept. Where somebody has asked that portal for himself
   * it is not asked: the record is one for all, and his nodes are found by it. Then the login tells.
   */
  async isOffered(login: IscsiLogin): Promise<Result<void>> {
    const question = questionOf(login);
    const owner = await this.#parts.ownerOfQuestion(question);
    if (!owner.ok || owner.value === 'somebody') return owner.ok ? done : owner;
    const made = await this.run('iscsiadm', newDiscovery(login), RECORD_MS);
    if (!made.ok) return made;
    const settings = [...DISCOVERY_SETTINGS, ...login.discovery];
    const written = await this.#parts.writeRecord({ ...question, settings, isOurs: true });
    const report = written.ok ? await this.#ask(login) : written;
    const forgotten = await this.#forgetQuestion(login);
    if (!report.ok || !forgotten.ok) return report.ok ? forgotten : report;
    if (targetsIn(report.value.stdout).includes(login.iqn)) return done;
    const message = `the portal ${login.portal} offers us no target ${login.iqn}`;
    return fail({ code: 'target-refused', message, effect: 'none', blocker: login.portal });
  }

  /** Somebody may have asked meanwhile. */
  async #forgetQuestion(login: IscsiLogin): Promise<Result<void>> {
    const owner = await this.#parts.ownerOfQuestion(questionOf(login));
    if (!owner.ok || owner.value !== 'ours') return owner.ok ? done : owner;
    return this.run('iscsiadm', deleteDiscovery(login), RECORD_MS);
  }

  async #ask(login: IscsiLogin): Promise<Result<ToolReport>> {
    const tool = 'iscsiadm';
    const report = await this.#parts.runTool({ tool, argv: discover(login), deadlineMs: DISCOVERY_MS });
    if (!report.ok || isDone(report.value)) return report;
    const { exitCode, deadlinePassed } = report.value;
    const code = deadlinePassed ? 'target-unreachable' : codeOfExit(exitCode);
    const message = `${login.portal} was asked for its targets: ${endOf(tool, report.value)}`;
    return fail({ code, message, effect: 'none', blocker: login.portal });
  }

  /** Anew: one that a crash, or somebody else, has left may say anything. */
  async makeNode(login: IscsiLogin): Promise<Result<'made' | 'in use'>> {
    const forgotten = await this.#delete(login);
    if (!forgotten.ok || forgotten.value === 'in use') return forgotten.ok ? ok('in use') : forgotten;
    const made = await this.run('iscsiadm', newNode(login), RECORD_MS);
    const settings = [...SESSION_SETTINGS, ...login.session];
    const record = { ...recordOf(login, ['nodes', login.iqn], login.iface), settings };
    const written = made.ok ? await this.#parts.writeRecord(record) : made;
    return written.ok ? ok('made') : written;
  }

  async forgetNode(way: IscsiWay): Promise<Result<void>> {
    const deleted = await this.#delete(way);
    return deleted.ok ? done : deleted;
  }

  /** `in use`: a session was made by it. */
  async #delete(way: IscsiWay): Promise<Result<'gone' | 'in use'>> {
    const argv = deleteNode(way);
    const report = await this.#parts.runTool({ tool: 'iscsiadm', argv, deadlineMs: RECORD_MS });
    if (report.ok && report.value.exitCode === EXIT.nothingFound) return ok('gone');
    if (report.ok && report.value.exitCode === EXIT.sessionExists) return ok('in use');
    const judged = this.#judge('iscsiadm', report);
    return judged.ok ? ok('gone') : judged;
  }

  async run(tool: string, argv: readonly string[], deadlineMs: number): Promise<Result<void>> {
    return this.#judge(tool, await this.#parts.runTool({ tool, argv, deadlineMs }));
  }

  #judge(tool: string, report: ToolAnswer): Result<void> {
    if (!report.ok || isDone(report.value)) return report.ok ? done : report;
    const code = report.value.deadlinePassed ? 'deadline-passed' : 'input-output';
    return fail({ code, message: endOf(tool, report.value), effect: 'unknown' });
  }
}

function questionOf(way: IscsiWay): Omit<IscsiRecord, 'settings'> {
  return recordOf(way, ['send_targets'], 'st_config');
}

function recordOf({ portal }: IscsiWay, folder: readonly string[], leaf: string) {
  const [path] = DATABASES;
  return { path, folder, portal: recordNameOf(portal), leaf };
}

function isDone({ exitCode, deadlinePassed }: ToolReport): boolean {
  return exitCode === 0 && !deadlinePassed;
}
