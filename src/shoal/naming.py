"""What the name of a column speaks of: names of people, ways to reach them, places, health, money, work.

Knows words in ten languages and nothing of values or tables.

>>> speaks_of("zip"), speaks_of("admitted"), speaks_of("x17")
('a place', 'a visible trait or event', None)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from shoal.looks import words_of
from shoal.schema import Role


class Hint(NamedTuple):
    """What a name speaks of, and the role that asks for: other where others hardly know it."""

    role: Role
    about: str


# What words in a column's name speak of; the first that fits counts. Whole words or two neighbours written together,
# stems between stars anywhere in the name, for languages that join their words. Without accents, in English, German,
# French, Spanish, Italian, Portuguese, Dutch, the Scandinavian languages and Polish.
PERSONAL_NAME = Hint("identifier", "personal names")
CONTACT = Hint("identifier", "ways to reach a person")
PERSONAL_NUMBER = Hint("identifier", "numbers that belong to one person")
HEALTH = Hint("sensitive", "health")
BELIEF = Hint("sensitive", "belief, convictions or private life")
SEX = Hint("quasi", "sex")
PLACE = Hint("quasi", "a place")
ORIGIN = Hint("quasi", "origin")
WORK = Hint("quasi", "work")
BIRTH = Hint("quasi", "birth")
AGE = Hint("quasi", "age")
FAMILY = Hint("quasi", "family")
EDUCATION = Hint("quasi", "education")
TIME = Hint("quasi", "a point in time")
MONEY = Hint("sensitive", "money")
JUDGED = Hint("sensitive", "how a person was judged")
ANSWER = Hint("other", "answers and ratings")
_HINTS = {
    PERSONAL_NAME: """
        *surname* *nachname* *vorname* forename firstname lastname fullname givenname familyname nickname middlename
        maidenname username familienname geburtsname prenom apellido apellidos cognome sobrenome apelido nextofkin
        emergencycontact handle achternaam voornaam efternamn fornamn etternavn fornavn nazwisko imie
    """,
    CONTACT: """
        *email* *telefon* *telephone* *phonenum* *strasse* *ipaddress* mail phone tel mobile handy fax address adresse adres
        addr direccion indirizzo endereco anschrift street rue calle straat gata ulica url website homepage ip login courriel
        correo telefono telefone cellphone hausnummer macaddress
    """,
    PERSONAL_NUMBER: """
        *socialsecurity* *versicherungsnummer* *versichertennummer* *steuernummer* *kontonummer* *accountnum* *cardnum*
        *codicefiscale* *medicalrecord* ssn nino nhs mrn passport passeport pasaporte passaporto reisepass *ausweis*
        *nationalid* *driverslicen* *licencenumber* *licensenumber* *policynumber* *numerosecurite* iban msisdn imsi deviceid
        nationalinsurance medicareid medicaidid medicarenumber hospitalnumber policyno accountno acctnum acctno platenumber
        steuerid licenceno licenseno upn birthnumber dni nie nif curp cpf bsn pesel aadhaar personnummer imei vin kennzeichen
        licenceplate licenseplate fingerprint photo signature
    """,
    AGE: """
        age agea agep ageyr ridageyr edad eta idade leeftijd alder alter wiek agegroup agegrp agecat ageband agerange
        *altersgr*
    """,
    BIRTH: """
        dob yob yrbrn dobyr *birth* *geburt* *naissance* *nacimiento* *nascita* *nascimento* *geboorte*
    """,
    Hint("other", "how a sample was drawn"): """
        designweight sampleweight samplingweight surveyweight finalweight popweight weightfinal anweight pspwght pwght dweight
        pwgtp wgt perwt hhwt pweight fnlwgt strata stratum psu
    """,
    Hint("other", "amounts of use"): """
        *stunden* *minuten* *verbrauch* minutes hours calls sms messages usage gb mb kwh kw clicks logins sessions
        transactions duration roaming pageviews downloads renewals consumption units quantity
    """,
    TIME: """
        *datum* date dt dod startdate enddate fecha year month day jahr monat annee mois ano mes dtc
    """,
    HEALTH: """
        ill *diagnos* *disease* *illness* *medicament* *medikament* *krankheit* *pregnan* *genetic* *psych* *suicid* *depress*
        *therap* *addict* *prozedur* *causeofdeath* *comorbid* *cholester* *systol* *diastol* *bloodpress* *injur* *verletz*
        *behinder* *handicap* *mentalhealth* *vaccin* *impf* specialeducation specialed iep sick absent absence absences
        health *expire* dthfl mortality died deceased icd dx drg hba sysbp diabp sbp dbp crp phq gad severity sev adverse ae
        aeterm aesev lab labvalue triage allergies condition disorder symptom symptoms hiv aids cancer tumor tumour drug drugs
        cpt ndc supply medication prescription treatment procedure surgery allergy disability handicap blood genotype mutation
        smoker smoking alcohol bmi glucose outcome result maladie enfermedad malattia doenca ziekte sjukdom choroba
    """,
    Hint("other", "how contracts and payments are handled"): """
        paymentmethod paymenttype paymentmode hascreditcard hascrcard claimtype claimstatus contracttype creditcardtype
    """,
    MONEY: """
        *salary* *income* *einkommen* *kosten* *gehalt* inctot incwage ftotinc amount amounts betrag overdue arrears default
        freelunch earning earnings wage wages pay debt loan credit tax balance capital cost costs charge charges payment paid
        billed reserve reserves fine fines fee fees premium praemie copay savings bonus assets wealth mortgage lohn schulden
        *rueckstand* *ruckstand* betrage umsatz cout couts montant prime importe valor eur usd chf gbp pincp wagp amt pmt
        hinctnta salaire revenu salario sueldo ingresos deuda stipendio reddito renda loon inkomen
    """,
    JUDGED: """
        *disciplin* failures *infraction* *recidiv* *verurteil* performance misconduct examgrade finalgrade passed failed
        verdict points punkte punktzahl peine decision appeal asylum permit detained detention
    """,
    ANSWER: """
        *satisf* *zufried* happy happiness trust agree agreement opinion attitude importance rating ratings likert engagement
        vertrauen
    """,
    BELIEF: """
        *religi* *politic* *sexual* *criminal* *partei* rlgdnm lrscale *prtcl* unionmember tradeunion faith confession
        konfession party vote orientation offence offense crime conviction arrest sentence suspension suspensions straftat
        delit delito reato gpa score mark marks
    """,
    SEX: """
        sex gender gndr riagendr geschlecht sexe sexo sesso genere genero geslacht kon kjonn plec
    """,
    PLACE: """
        *zipcode* *postleit* *codepostal* *codigopostal* *country* *municip* zip postcode postal plz city town village urban
        rural statefip county cntry puma pumas domicil canton kanton ward ortsteil stadtteil quartier insee fips site siteid
        centre center hospital clinic facility tribunal court district state province region nation residence location area
        tract neighbourhood neighborhood stadt ort wohnort gemeinde kreis bezirk bundesland land ville commune departement
        pays ciudad provincia pais citta comune regione paese cidade estado stad gemeente miasto lat lon lng latitude
        longitude
    """,
    ORIGIN: """
        *ethnic* *nationalit* *citizen* *staatsangeh* *immigra* *mothertongue* *muttersprach* *langue* *citizensh* race raca
        raza rac hisp hispanic pobp brncntr ctzcntr lnghom cit ethnic native origin language herkunft sprache idioma lingua
        bpl nacionalidad nazionalita
    """,
    FAMILY: """
        *marital* *familienst* *matrimon* *familial* *kinderzahl* *haushalt* civilstatus marstatus maritalb mar hhsize hhmmb
        famsize guardian partner senior dwelling homeownership ownrent married marst relationship relate household housing
        dependents children nchild kids etatcivil estadocivil statocivile kinder enfants hijos figli
    """,
    WORK: """
        *occupat* *profession* *employer* *beruf* isco naics nace soc kldb occp indp position sector veteran military
        militarystatus job employment occ workclass industry title rank department beruf arbeit metier emploi ocupacion
        trabajo profesion lavoro occupazione profissao ocupacao beroep yrke zawod
    """,
    EDUCATION: """
        *educat* *bildung* *schulabschl* *schooling* *enrol* *semester* qualification qualifications niveauetude niveauetudes
        major programme school gradelevel educ eduyrs edulvl edulvla edulvlb eisced schl medu fedu degree university college
        diploma schule estudios istruzione escolaridade opleiding
    """,
    Hint("quasi", "a visible trait or event"): """
        admission admitted discharge discharged visit arrival entry hired hire death vehicle vehicles car cars fahrzeug
        carownership *baujahr* height weight eye hair stay grosse gewicht taille poids peso talla altezza altura
    """,
    Hint("other", "how an organisation works"): """
        *versicherungsart* plan tariff contract product channel card account device model network provider service status
        method mode branch banking course term campaign segment churn churned version system wave round batch shift arm
        billing lines streaming internet online subscription
    """,
}
# What is answered, in lower case and without accents, and the share of the answers that must be among these.
_ANSWERS = {
    SEX: (
        1.0,
        """
        divers; f; female; femme; femmina; frau; hombre; homme; m; male; man; mann; maschio; mujer; männlich; w; weiblich;
        woman
        """,
    ),
    FAMILY: (
        0.6,
        """
        casado; celibataire; child; cohabiting; divorce; divorced; divorciado; father; geschieden; husband; ledig; marie;
        married; mother; never married; not in family; own child; partnered; separated; single; soltero; spouse; unmarried;
        verheiratet; verwitwet; veuf; viudo; widowed; wife
        """,
    ),
    ORIGIN: (
        0.5,
        """
        african american; arabic; asian; black; black or african american; caucasian; chinese; english; french; german; hindi;
        hispanic; italian; latino; mixed; native american; polish; portuguese; russian; spanish; turkish; white
        """,
    ),
    WORK: (
        0.5,
        """
        admin; angestellter; arbeiter; blue collar; cadre; clerk; cook; driver; employe; engineer; farmer; homemaker;
        housewife; lawyer; lehrer; manager; nurse; ouvrier; rentner; retired; retraite; self employed; services; student;
        teacher; technician; unemployed; worker
        """,
    ),
    EDUCATION: (
        0.5,
        """
        abitur; bachelor; bachelors; college; doctorate; elementary; graduate; hauptschule; high school; master; masters; phd;
        primary; realschule; secondary; some college; tertiary; university
        """,
    ),
    PLACE: (
        0.9,
        """
        afg; at; au; aus; aut; be; bel; br; bra; ca; can; ch; che; chn; cn; cz; de; deu; dk; es; esp; fi; fr; fra; gb; gbr;
        gr; hu; ie; in; ind; irn; it; ita; jp; jpn; mx; nga; nl; nld; no; pl; pol; pt; ro; ru; se; swe; syr; tr; tur; ua; uk;
        ukr; us; usa
        """,
    ),
}
_VALUES = {
    hint: (frozenset(answer.strip() for answer in answers.split(";")), share)
    for hint, (share, answers) in _ANSWERS.items()
}
_WORDS = {
    hint: (frozenset(words.split()), tuple(word.strip("*") for word in words.split() if "*" in word))
    for hint, words in _HINTS.items()
}
CODED = (HEALTH, BELIEF, SEX, PLACE, ORIGIN, WORK)  # integers under such names are codes, not quantities
_PERSONS = {
    *("patient", "person", "customer", "client", "employee", "user", "student", "member", "subject", "respondent"),
    *(
        "pupil",
        "subscriber",
        "beneficiary",
        "bene",
        "enrollee",
        "insured",
        "cardholder",
        "policyholder",
        "taxpayer",
        "applicant",
    ),
    *(
        "learner",
        "worker",
        "staff",
        "donor",
        "resident",
        "tenant",
        "inmate",
        "borrower",
        "claimant",
        "passenger",
        "guest",
        "voter",
    ),
    *(
        "player",
        "offender",
        "defendant",
        "matriculation",
        "matrikel",
        "mitglied",
        "mitglieds",
        "versicherten",
        "versicherter",
    ),
    *("patienten", "kunden", "schuler", "schueler", "teilnehmer", "bewohner", "antragsteller", "personal", "klienten"),
    *("eleve", "salarie", "assure", "adherent", "alumno", "empleado", "afiliado", "aluno", "vertragskonto"),
    *("participant", "owner", "holder", "mother", "father", "spouse", "parent", "child", "doctor", "physician"),
    *("kunde", "mitarbeiter", "paciente", "cliente", "persona"),
}
_NAMES = {"name", "names", "nom", "nombre", "nombres", "nome", "naam", "namn", "navn"}
_NAME_PARTS = _PERSONS | {
    *("first", "last", "full", "given", "family", "middle", "maiden", "birth", "legal", "completo", "famille", "de")
}
KEYS = {"id", "ids", "uid", "uuid", "guid", "key", "pk", "record", "hash", "token", "barcode"}
NUMBERS = {"no", "nr", "num", "number", "nummer", "numero", "code", "ref", "index", "idx", "case", "serial", "row"}
QUANTITIES = {"num", "number", "count", "cnt", "years", "days", "hours", "level", "per", "of"}
PERSON_KEYS = {joined for one in _PERSONS for other in (*KEYS, *NUMBERS, "") for joined in (one + other, other + one)}
# People whom a row mentions although it is about somebody else.
_MENTIONED = ("owner", "holder", "mother", "father", "spouse", "parent", "child", "doctor", "physician")
OWN_KEYS = {key for key in PERSON_KEYS if not any(one in key for one in _MENTIONED)} | {
    *(
        "respid",
        "custid",
        "memid",
        "studid",
        "empid",
        "pid",
        "patid",
        "patno",
        "patnr",
        "patientenid",
        "patientennr",
        "patientennummer",
        "personid",
        "kundennr",
    ),
    *("kundennummer", "persnr", "empno", "custno", "memberno", "subjid", "usubjid", "idpaciente", "idpatient", "pidp"),
}
ZIP = ("zip", "postcode", "postal", "plz", "postleit")


def hint_of(words: Sequence[str], *, names_nobody: bool = False) -> Hint | None:
    """What the words of a name speak of; None where that is not known.

    `names_nobody`: its values are nobody's names or numbers, whatever it is called.
    """
    joined = "".join(words)
    if names_nobody:
        pass
    elif joined in PERSON_KEYS or joined in OWN_KEYS:
        return PERSONAL_NUMBER
    elif _NAMES & {*words} and {*words} - _NAMES <= _NAME_PARTS:
        return PERSONAL_NAME
    known = {*words, *(one + other for one, other in pairwise(words))}
    for hint, (whole, stems) in _WORDS.items():
        if not (names_nobody and hint.role == "identifier") and (
            known & whole or any(stem in joined for stem in stems)
        ):
            return hint
    return None


def hint_of_values(values: Iterable[str]) -> Hint | None:
    """What short answers speak of, whatever their column is called: two of a list of well-known ones, and nothing strange.

    >>> hint_of_values(["Married", "never married", "widowed", "divorced"]).about, hint_of_values(["yes", "no"])
    ('family', None)
    """
    told = {" ".join(words_of(value)) for value in values} - {"", "other", "unknown", "none", "sonstige", "autre", "na"}
    for hint, (answers, share) in _VALUES.items():
        if len(told & answers) >= 2 and len(told & answers) >= share * len(told):
            return hint
    return None


def speaks_of(name: str) -> str | None:
    """What the name of a column speaks of, where that is known.

    >>> speaks_of("zip"), speaks_of("admitted"), speaks_of("x17")
    ('a place', 'a visible trait or event', None)
    """
    hint = hint_of(words_of(name))
    return None if hint is None else hint.about
