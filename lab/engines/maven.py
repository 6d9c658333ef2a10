"""Gets Amazon's DynamoDB Local from Maven Central, once, into a folder with a program `run` that starts it.

Rule 1: By coordinates and through `mvn`, so that a mirror in Maven's own settings is honoured; no host is named here.
Rule 2: The folder appears whole or not at all: it is made beside its place and then moved.
Rule 3: `run` listens on loopback only. DynamoDB Local by itself listens on every interface and has no option against
it, so a page of Java sets the host before the start; it is compiled at the start, which needs a JDK and a second.
Rule 4: Four of its dependencies are left out: they send usage figures to AWS (switched off here), and are not in every
mirror. Three must still be there for Java to load the server, in whatever version.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

VERSION = "3.3.1"
PLACEHOLDERS_VERSION = "2.41.0"
GET_TIMEOUT_S = 600
LOG_TAIL_LINES = 15
PLACEHOLDERS = ("cognitoidentity", "cognitoidentityprovider", "pinpoint")


class LocalMissing(Exception):
    """DynamoDB Local cannot be had here: Java or Maven is missing. Nothing was started."""


class LocalNotGot(Exception):
    """Maven is here and failed; the message has the last lines it said. Nothing was started."""


def folder(environ: Mapping[str, str], prefix: str) -> Path:
    """Where DynamoDB Local is or goes: LEDGER_DYNAMODB_LOCAL if set, else beside this Python (in `.venv`)."""
    return Path(environ.get("LEDGER_DYNAMODB_LOCAL") or Path(prefix) / f"dynamodb-local-{VERSION}")


def can_be_had(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether Java and Maven are on the PATH."""
    return not _missing(environ)


def installed() -> Path | None:
    """The program that starts DynamoDB Local, if it was got before and Java is still here."""
    run = folder(os.environ, sys.prefix) / "run"
    return run if run.is_file() and shutil.which("java") else None


def install() -> Path:
    """The program that starts DynamoDB Local, got now if it is not there.

    Raises LocalMissing (no Java, no Maven) and LocalNotGot.
    """
    there = installed()
    if there is not None:
        return there
    missing = _missing(os.environ)
    if missing:
        raise LocalMissing(f"DynamoDB Local needs a JDK (17 or later) and Maven; not on PATH: {', '.join(missing)}")
    place = folder(os.environ, sys.prefix)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as name:
        made = Path(name)
        _fill(made)
        made.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
        made.mkdir()  # for the `with` to remove
    return place / "run"


def _missing(environ: Mapping[str, str]) -> list[str]:
    return [name for name in ("java", "mvn") if shutil.which(name, path=environ.get("PATH", "")) is None]


def _fill(made: Path) -> None:
    (made / "pom.xml").write_text(_pom())
    (made / "Loopback.java").write_text(LOOPBACK)
    run = made / "run"
    run.write_text(RUN)
    run.chmod(0o755)
    command = ["mvn", "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"]
    try:
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=GET_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise LocalNotGot(f"Maven did not get DynamoDB Local within {GET_TIMEOUT_S} s") from None
    if done.returncode != 0 or not list(made.glob("lib/DynamoDBLocal-*.jar")):
        said = "\n".join((done.stdout + done.stderr).splitlines()[-LOG_TAIL_LINES:])
        raise LocalNotGot(f"Maven could not get DynamoDB Local {VERSION}:\n{said}")


def _pom() -> str:
    sdk = "<groupId>software.amazon.awssdk</groupId>"
    left_out = "".join(
        f"<exclusion>{sdk}<artifactId>{name}</artifactId></exclusion>" for name in (*PLACEHOLDERS, "dynamodb-enhanced")
    )
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    placeholders = "".join(
        f"<dependency>{sdk}<artifactId>{name}</artifactId><version>{PLACEHOLDERS_VERSION}</version>{alone}</dependency>"
        for name in PLACEHOLDERS
    )
    return f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>torture</groupId><artifactId>dynamodb-local</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>software.amazon.dynamodb</groupId><artifactId>DynamoDBLocal</artifactId><version>{VERSION}</version>
      <exclusions>{left_out}</exclusions>
    </dependency>
    {placeholders}
  </dependencies>
</project>
"""


LOOPBACK = """\
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/** Starts DynamoDB Local on 127.0.0.1 only; the arguments are its own. */
public class Loopback {
    public static void main(String[] arguments) throws Exception {
        DynamoDBProxyServer local = ServerRunner.createServerFromCommandLineArgs(arguments);
        var field = DynamoDBProxyServer.class.getDeclaredField("server");
        field.setAccessible(true);
        for (Connector connector : ((Server) field.get(local)).getConnectors()) {
            ((ServerConnector) connector).setHost("127.0.0.1");
        }
        local.safeStart();
        local.join();
    }
}
"""

RUN = """\
#!/bin/sh
# Starts DynamoDB Local in memory on the port that GATEWAY_PORT names. Written by lab/engines/maven.py.
here=$(dirname "$0")
exec java -Xmx2g -Djava.library.path="$here/lib" -cp "$here/lib/*" \\
  "$here/Loopback.java" -inMemory -disableTelemetry -port "$GATEWAY_PORT"
"""
