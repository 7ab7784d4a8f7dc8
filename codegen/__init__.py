"""Build time: tool specs in, a statically typed package out. Nothing here is imported when tools run.

``generate(find_settings(Path()))`` writes the package of a project; ``check`` returns the difference. Every
name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.codegen.imports.drift import CHANGE_KINDS as CHANGE_KINDS
    from toolkit.codegen.imports.drift import DefinitionChange as DefinitionChange
    from toolkit.codegen.imports.drift import find_changes as find_changes
    from toolkit.codegen.imports.python_modules import read_functions as read_functions
    from toolkit.codegen.imports.run import FileReport as FileReport
    from toolkit.codegen.imports.run import ImportObserver as ImportObserver
    from toolkit.codegen.imports.run import ImportsFailed as ImportsFailed
    from toolkit.codegen.imports.run import find_live_changes as find_live_changes
    from toolkit.codegen.imports.run import run_imports as run_imports
    from toolkit.codegen.imports.settings import ImportSettings as ImportSettings
    from toolkit.codegen.imports.settings import OAuthSettings as OAuthSettings
    from toolkit.codegen.imports.trust import TrustDecision as TrustDecision
    from toolkit.codegen.imports.trust import UntrustedImport as UntrustedImport
    from toolkit.codegen.imports.trust import accept_configured as accept_configured
    from toolkit.codegen.imports.trust import refuse_untrusted as refuse_untrusted
    from toolkit.codegen.lint import imported_findings as imported_findings
    from toolkit.codegen.lint import schema_findings as schema_findings
    from toolkit.codegen.lint import schema_mistakes as schema_mistakes
    from toolkit.codegen.package.manifest import FORM as FORM
    from toolkit.codegen.package.manifest import read_form as read_form
    from toolkit.codegen.run import check as check
    from toolkit.codegen.run import generate as generate
    from toolkit.codegen.settings import Settings as Settings
    from toolkit.codegen.settings import find_settings as find_settings
    from toolkit.codegen.settings import list_missing_imports as list_missing_imports
    from toolkit.codegen.settings import read_settings as read_settings
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
