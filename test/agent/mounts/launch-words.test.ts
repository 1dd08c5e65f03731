/** The words for podman, a shell and a unit are read back as what was meant, whatever is in a path. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { type LaunchWords, shellWord } from '../../../agent/mounts/launch-words.ts';
import type { ContainerMount, PlaceInContainer } from '../../../agent/mounts/mounts-document.ts';
import { podmanArguments } from '../../../agent/mounts/podman-arguments.ts';
import { systemdBinds } from '../../../agent/mounts/systemd-binds.ts';
import { BARE } from './pod-mounts.ts';

/** Characters that mean something to somebody on the way, much more often than by chance. */
const absolutePath = fc
  .array(
    fc.oneof(fc.constantFrom(...' \t:,"\'\\%$`=;#&|<>*?[]{}~!-é日\u{1f600}'), fc.constantFrom(...'ab/')),
    {
      maxLength: 20,
    },
  )
  .map((characters) => `/${characters.join('')}`);
const withLineBreaks = fc
  .tuple(absolutePath, fc.constantFrom('', '\n', '\r\n'))
  .map((parts) => parts.join(''));

function place(hostPath: string, containerPath: string, readOnly = false): PlaceInContainer {
  return { volume: 'v', containerPath, hostPath, readOnly, state: 'mounted', sentence: null, reason: null };
}

function mount(hostPath: string, containerPath: string, rest: Partial<ContainerMount> = {}): ContainerMount {
  return {
    ...place(hostPath, containerPath),
    recursiveReadOnly: 'no',
    propagation: 'None',
    subPath: null,
    image: null,
    ...rest,
  };
}

function wordsOf(told: LaunchWords): readonly string[] {
  assert.equal(told.kind, 'words');
  return told.kind === 'words' ? told.words : [];
}

/** As encoding/csv of Go reads one line. */
function fieldsOf(line: string): readonly string[] {
  const field = /"((?:[^"]|"")*)"(?:,|$)|([^,"]*)(?:,|$)/gy;
  const fields: string[] = [];
  for (let at = 0; at < line.length; at = field.lastIndex) {
    const found = field.exec(line);
    assert.ok(found, line);
    fields.push(found[1]?.replaceAll('""', '"') ?? found[2] ?? '');
  }
  return fields;
}

test('podman is told every mount in one word that it reads back whole', () => {
  fc.assert(
    fc.property(withLineBreaks, withLineBreaks, fc.boolean(), (source, destination, readOnly) => {
      const [word = ''] = wordsOf(
        podmanArguments({ ...BARE, mounts: [mount(source, destination, { readOnly })] }),
      );
      assert.ok(word.startsWith('--mount='));
      assert.deepEqual(fieldsOf(word.slice('--mount='.length)), [
        'type=bind',
        `src=${source}`,
        `dst=${destination}`,
        ...(readOnly ? ['ro=true'] : []),
        'bind-propagation=rprivate',
      ]);
    }),
  );
});

test('podman is told propagation, labels and devices, and what it cannot do is said', () => {
  const told = podmanArguments({
    ...BARE,
    seLinux: { user: null, role: null, type: 't', level: 's0:c1' },
    mounts: [
      mount('/s', '/d', { propagation: 'HostToContainer', readOnly: true, recursiveReadOnly: 'if-possible' }),
      mount('/s', '/e', { propagation: 'Bidirectional' }),
    ],
    devices: [place('/dev/a', '/dev/b'), place('/dev/a', '/dev/c', true)],
  });
  assert.deepEqual(wordsOf(told), [
    '--mount=type=bind,src=/s,dst=/d,ro=true,bind-propagation=rslave',
    '--mount=type=bind,src=/s,dst=/e,bind-propagation=rshared',
    '--device=/dev/a:/dev/b:rwm',
    '--device=/dev/a:/dev/c:rm',
    '--security-opt=label=type:t',
    '--security-opt=label=level:s0:c1',
  ]);
  const required = mount('/s', '/d', { readOnly: true, recursiveReadOnly: 'required' });
  assert.equal(podmanArguments({ ...BARE, mounts: [required] }).kind, 'impossible');
  assert.equal(podmanArguments({ ...BARE, devices: [place('/dev/a:b', '/dev/c')] }).kind, 'impossible');
});

test('a shell reads every word back as it was', () => {
  const words = fc.sample(withLineBreaks, 400);
  const script = `printf '%s\\0' ${words.map(shellWord).join(' ')}`;
  const read = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' });
  assert.deepEqual(read.split('\0').slice(0, -1), words);
});

/** As systemd reads a value: `extract_first_word` with quotes, then the specifiers. */
function unitWords(value: string): readonly string[] {
  const words: string[] = [];
  let word = '';
  let quote = '';
  for (let at = 0; at < value.length; at += 1) {
    const character = value.charAt(at);
    if (character === '\\') {
      at += 1;
      word += value.charAt(at);
    } else if (quote !== '') {
      if (character === quote) quote = '';
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
    } else if (character === ':') {
      words.push(word);
      word = '';
    } else {
      assert.ok(!/\s/.test(character), 'a blank begins the next pair');
      word += character;
    }
  }
  assert.equal(quote, '', 'every quote is closed');
  return [...words, word].map((one) => {
    assert.ok(/^(?:[^%]|%%)*$/.test(one), `${one} has no specifier`);
    return one.replaceAll('%%', '%');
  });
}

test('a unit says every path in one line that systemd reads back whole', () => {
  fc.assert(
    fc.property(absolutePath, absolutePath, fc.boolean(), (source, destination, readOnly) => {
      const [line = ''] = wordsOf(
        systemdBinds({ ...BARE, mounts: [mount(source, destination, { readOnly })] }),
      );
      const [, key, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
      assert.equal(key, readOnly ? 'BindReadOnlyPaths' : 'BindPaths');
      assert.deepEqual(unitWords(value), [source, destination]);
      // What stands at the end of a line would join the next one to it.
      assert.doesNotMatch(line, /\\$/);
    }),
  );
});

test('what a unit cannot say is said, and no line is printed', () => {
  const impossible = (rest: Partial<typeof BARE>): readonly string[] => {
    const told = systemdBinds({ ...BARE, ...rest });
    return told.kind === 'impossible' ? told.problems : assert.fail(told.words.join('\n'));
  };
  assert.match(impossible({ mounts: [mount('/a\nExecStart=/bin/x', '/b')] }).join(), /line break/);
  // It leaves out such a line with a word in the journal, and starts what writes to the disk of the node then.
  for (const path of ['/data/../b', '/data/..'])
    assert.match(
      impossible({ mounts: [mount('/a', path)] }).join(),
      /^\/data\/\S+: a unit takes no path with/,
    );
  assert.match(impossible({ devices: [place('/dev/a', '/dev/../b')] }).join(), /a unit takes no path with/);
  assert.deepEqual(wordsOf(systemdBinds({ ...BARE, mounts: [mount('/a', '/..data/b..')] })), [
    'BindPaths=/a:/..data/b..',
  ]);
  assert.match(
    impossible({ mounts: [mount('/a', '/b', { propagation: 'Bidirectional' })] }).join(),
    /no word/,
  );
  assert.match(impossible({ devices: [place('/dev/a', '/dev/b', true)] }).join(), /device read-only/);
  const seLinux = { user: null, role: null, type: null, level: 's0' };
  assert.match(impossible({ seLinux }).join(), /SELinuxContext=/);
});

test('an image is mounted by podman itself, and not by systemd', () => {
  const image = { reference: 'quay.io/example/data:1', pullPolicy: 'Never' };
  const container = { ...BARE, mounts: [{ ...mount('', '/files'), hostPath: null, image }] };
  assert.deepEqual(wordsOf(podmanArguments(container)), [
    '--mount=type=image,src=quay.io/example/data:1,dst=/files',
  ]);
  const told = systemdBinds(container);
  assert.equal(told.kind, 'impossible');
  assert.match(
    told.kind === 'impossible' ? told.problems.join() : '',
    /^\/files: systemd mounts no image; bind what podman image mount quay\.io\/example\/data:1 prints$/,
  );
});
