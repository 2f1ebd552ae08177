"""What is installed and imported, told by the bytes of its files: the facts of a framework's environment.
A version is only a word; the bits depend on the files that this process has loaded."""
import base64
import csv
import hashlib
import importlib.metadata
import os
import re
import sys
import sysconfig


def digest_of(files, digits=32):
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: (os.path.basename(file), file)):
        with open(file, "rb") as content:
            digest.update(hashlib.sha256(content.read()).digest())
    return digest.hexdigest()[:digits]


def distribution_of(names):
    for name in names:
        try:
            return importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def record_rows(distribution):
    """(path, size or None, SHA-256 or "") of its files, as they were installed."""
    rows = []
    record = (distribution.read_text("RECORD") or "").splitlines()
    for path, value, size in (row for row in csv.reader(record) if len(row) == 3):
        if not path.startswith(("..", "/")) and ".dist-info/" not in path \
                and not path.endswith(".pyc"):
            kind, _, value = value.partition("=")
            rows.append((path, int(size) if size else None, value if kind == "sha256" else ""))
    return sorted(rows, key=lambda row: row[0])


def loaded_files():
    """Paths of what this process has imported, or of the archives that it was imported from."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return {os.path.realpath(file) for file in map(itself_or_archive, files) if file}


def itself_or_archive(file):
    """FILE, or what it is a member of ("x.zip/a.py"); None: it is no file at all."""
    while file and not os.path.exists(file):
        file = os.path.dirname(file) if os.path.dirname(file) != file else None
    return file if file and os.path.isfile(file) else None


def files_that_start():
    """Files whose lines site executed when Python started, without any module of theirs."""
    files = (os.path.join(folder, name) for folder in sys.path if os.path.isdir(folder or ".")
             for name in os.listdir(folder or ".") if name.endswith(".pth"))
    return {os.path.realpath(file) for file in files if has_code(file)}


def has_code(file):
    try:
        with open(file, "rb") as lines:
            return any(line.startswith((b"import ", b"import\t")) for line in lines)
    except OSError:
        return False


def sha256_of(content):
    """As RECORD writes it."""
    digest = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def content_if_changed(there, size, value, loaded):
    """What the file THERE has, where it is not what was installed; None: it is.  Python files
    that are LOADED are compared whole, the rest (gigabytes) by its size."""
    same_size = size is None or os.stat(there).st_size == size
    whole = value and there in loaded
    if same_size and not whole:
        return None
    with open(there, "rb") as file:
        content = file.read()
    return None if same_size and sha256_of(content) == value else content


def changed_files(distribution, rows):
    """A digest of the files that are not as they were installed; None: all are."""
    digest, changed = hashlib.sha256(), 0
    loaded = {file for file in loaded_files() | files_that_start() if file.endswith((".py", ".pth"))}
    root = os.path.realpath(distribution.locate_file(""))
    for path, size, value in rows:
        try:
            content = content_if_changed(os.path.join(root, path), size, value, loaded)
        except OSError:
            content = b"missing"
        if content is not None:
            changed += 1
            digest.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
    return "%d: %s" % (changed, digest.hexdigest()[:32]) if changed else None


def plain(version):
    """Without what only a build adds ("2.4.1+cpu"), as PEP 440 compares it."""
    return re.sub("[-_]", ".", version.split("+")[0].strip().lower())


said = None  # what was loaded when facts were said


def facts(pack):
    """Which build of the version it is, and whether its files still are what was installed.
    Refused where what is imported says that it is another version than what was installed."""
    from pack import Refused
    global said
    said, found = loaded_files(), {}
    for part in pack.parts:
        found.update(file_facts(distribution_of([part]), part))
    distribution = distribution_of(pack.packages)
    if distribution is None:
        return found
    version, installed = pack.version(), distribution.version or ""
    if plain(version) != plain(installed):
        raise Refused("%s says that it is %s, and what is installed is %s of its package %s: which"
                      " one computes is not known"
                      % (pack.module, version or "of no version", installed,
                         distribution.metadata["Name"]))
    check_origin(pack, distribution)
    return {**found, **file_facts(distribution, pack.module), **facts_beside(pack)}


def check_origin(pack, distribution):
    """Refused where the package has files of the module, and the module is another file."""
    from pack import Refused
    rows = [path for path, _, _ in record_rows(distribution)
            if path.startswith((pack.module + "/", pack.module + "."))]
    file = os.path.realpath(getattr(pack.framework, "__file__", None) or "/")
    if rows and file not in {os.path.realpath(distribution.locate_file(path)) for path in rows
                             if os.path.basename(path) == os.path.basename(file)}:
        raise Refused("%s was imported from %s, which is no file of its package %s %s: which version"
                      " computes is not known" % (pack.module, file, distribution.metadata["Name"],
                                                  distribution.version))


def is_of_python(file, folder):
    """Whether FILE came with Python itself, whose FOLDER that is, and is no hook for whoever wants to change
    things."""
    hooks = ("sitecustomize.py", "usercustomize.py")
    return file.startswith(folder) and os.path.basename(file) not in hooks \
        and file[len(folder):].partition("/")[0] not in ("site-packages", "dist-packages")


def foreign(files):
    """Those that neither came with Python nor ask the framework."""
    folder = os.path.join(os.path.realpath(sysconfig.get_path("stdlib")), "")
    of_asking = {os.path.dirname(os.path.realpath(module.__file__)) for module in
                 (sys.modules["reprod_pack"], sys.modules["reprod_probe"], sys.modules[__name__])}
    return {file for file in files
            if not is_of_python(file, folder) and os.path.dirname(file) not in of_asking}


def loaded_late(pack):
    """What was loaded after the facts were said, lies where the framework does, and is not what was
    installed; None: nothing.  No fact tells of it, so what was computed has no environment."""
    new = foreign(loaded_files() - said) if said is not None else ()
    own = distribution_of(pack.packages) if new else None
    if own is None or not record_rows(own):
        return None
    folder = os.path.join(os.path.realpath(own.locate_file("")), "")
    for distribution in importlib.metadata.distributions():
        root = os.path.realpath(distribution.locate_file(""))
        for path, size, value in record_rows(distribution):
            file = os.path.join(root, path)
            if file in new and content_if_changed(file, size, value, {file}) is not None:
                return "%s is not what was installed, and was loaded while it computed" % file
            new.discard(file)
    loose = sorted(file for file in new if file.startswith(folder))
    return "%s belongs to no package, and was loaded while it computed" % loose[0] if loose else None


def loaded_before_runs(pack):
    """As loaded_late, of what a forker imported for all of its runs: these look at what came later still."""
    global said
    late, said = loaded_late(pack), loaded_files()
    return late


def facts_beside(pack):
    """What Python code is loaded beside the framework's: the packages, and files that no package
    has.  Either may have replaced an operation of the framework, whose own files stay what they were."""
    from pack import short
    own = {name.lower() for name in pack.packages + pack.parts}
    loose = foreign(loaded_files() | files_that_start())
    packages = []
    for distribution in importlib.metadata.distributions():
        root = os.path.realpath(distribution.locate_file(""))
        rows = record_rows(distribution)
        files = loose & {os.path.join(root, path) for path, _, _ in rows}
        loose -= files
        name = (distribution.metadata["Name"] or "?") if files else None
        if files and name.lower() not in own:
            changed = changed_files(distribution, rows)
            packages.append("%s %s%s" % (name, distribution.version, changed and " (%s)" % changed or ""))
    facts = {}
    if packages:
        facts["packages_beside"] = short(", ".join(sorted(packages)))
    if loose:
        facts["code_beside"] = "%d: %s" % (len(loose), digest_of(loose))
    return facts


def file_facts(distribution, module):
    rows = record_rows(distribution) if distribution is not None else []
    facts = {}
    if rows:
        text = "".join("%s %s\n" % (path, value) for path, _, value in rows)
        facts[module + "_files"] = hashlib.sha256(text.encode()).hexdigest()[:32]
        changed = changed_files(distribution, rows)
        if changed:
            facts[module + "_files_changed"] = changed
    return facts
