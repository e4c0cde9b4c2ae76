"""The reference of environment variables. A test compares the names with those in the code."""

from __future__ import annotations

from overtone.runs.settings import Settings
from scripts.docs_site.markdown import code, plain, table

# Names that Overtone reads, apart from the settings of a run.
VARIABLES = {
    "OVERTONE_MODEL": "SPEC of the model, if neither a flag nor the run file names one",
    "OVERTONE_REPORT": "HTML file for the report of all runs of a run file",
    "OVERTONE_PLUGINS": "plug-in files to load, separated by `:` (on Windows by `;`)",
    "OVERTONE_PRICES": "TOML file with prices per million tokens, for `budget_usd` and `overtone plan`",
    "OVERTONE_JOBS": "how many runs of a run file are asked at the same time (default: 1)",
    "OVERTONE_RAY_ENV": "names of further variables that models on a Ray cluster get, separated by commas",
    "OVERTONE_RAY_PLUGINS": "folder for copies of plug-ins on a Ray node (default: `ray-plugins` in the data folder)",
    "OVERTONE_INSECURE": "`yes` allows keys to be sent to other machines over plain http, like `--insecure`",
    "OVERTONE_TRUST_REMOTE_CODE": "`yes` allows models and metrics whose code is downloaded with their weights",
    "OVERTONE_ACCEPTED_LICENCES": "models whose licence you accept, separated by commas: `openpangu`",
    "OVERTONE_TOKEN": "token that clients of a server must send, if no token file is given",
    "OVERTONE_JUDGES": "folder with the results of tests of judges (default: `judges` in Overtone's data folder)",
    "OVERTONE_MEASURES": "folder of the measuring environment (default: `measures` in Overtone's data folder)",
    "OVERTONE_MINI": "folder of the model `mini` (default: `mini` in Overtone's data folder)",
    "OVERTONE_EMBEDDED": "folder of the embedded model's 8-bit weights (default: `embedded` in the data folder)",
    "OVERTONE_ECHAT": "folder with weights for training (default: `echat` in Overtone's data folder)",
    "OVERTONE_NISQA": "file with NISQA's weights, for the metric `nisqa`",
    "OVERTONE_WORDNET": "folder with WordNet's files, for the metric `meteor` (default: Debian's)",
    "OVERTONE_WORKER_PYTHON": "Python interpreter of the environment for `worker:` and `echat:` models",
    "OVERTONE_WORKER_ENV": "names of further variables that a worker may see, separated by commas; never secrets",
    "OVERTONE_S3_PYTHON": "Python interpreter of the environment for CosyVoice's S3 speech tokens",
    "OVERTONE_S3_CODE": "checkout of CosyVoice's code, for speech from S3 tokens",
}
INTERNAL = {"OVERTONE_WORKER_FD": "set by Overtone for the worker processes that it starts; do not set it"}
OTHERS = {
    "OPENAI_API_KEY": "key for `openai:` models and voices at OpenAI; `api_key_env=NAME` in a SPEC names another",
    "GEMINI_API_KEY": "key for `gemini:` models",
    "HF_TOKEN, GITHUB_TOKEN": "tokens for `overtone data fetch`; each is sent only to its own host",
    "HF_ENDPOINT, GITHUB_ENDPOINT": "mirrors of the hub and of GitHub, for `overtone data fetch`",
    "XDG_DATA_HOME": "parent of Overtone's data folder, `overtone` (default: `~/.local/share`)",
    "XDG_CONFIG_HOME": "parent of the folder with the list of trusted run files (default: `~/.config`)",
    "COLUMNS": "width of tables in the terminal",
}
NOT_IN_ENVIRONMENT = ("benchmark", "model", "judges", "plugins")  # settings that no variable of their own sets


def settings() -> dict[str, str]:
    """Return the variables that set a key of a run file."""
    keys = [key for key in Settings.__struct_fields__ if key not in NOT_IN_ENVIRONMENT]
    return {f"OVERTONE_{key.upper()}": key for key in keys}


def pages() -> dict[str, str]:
    """Return the page by path."""
    keys = table(["variable", "key"], ([code(name), code(key)] for name, key in settings().items()))
    return {
        "reference/environment.md": (
            "# Environment variables\n\n"
            "A flag overrides a run file, which overrides the environment, which overrides the default.\n\n"
            + _table(VARIABLES | INTERNAL)
            + "\n## Settings of a run\n\nEach of these variables sets a [key of a run file](run-files.md#run). Commas\n"
            "separate the entries of a list.\n\n" + keys + "\n## Variables of other tools\n\n" + _table(OTHERS)
        )
    }


def _table(variables: dict[str, str]) -> str:
    named = ((", ".join(map(code, names.split(", "))), plain(text)) for names, text in variables.items())
    return table(["variable", "meaning"], named)
